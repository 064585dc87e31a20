print("a"); 1 / 0;

await print("x")

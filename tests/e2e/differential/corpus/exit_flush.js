// A pipe takes 64 KiB at once; all of it must arrive before the exit.
process.stdout.write("x".repeat(1 << 20));
process.stdout.write("END\n");
process.exit(3);

import sys
sys.stdout.write("out 1 ")
sys.stderr.write("err 1\n")
sys.stdout.write("out 2")
print(sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.stdout.line_buffering, sys.stdout.write_through, sys.flags, file=sys.stderr)

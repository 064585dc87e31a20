import sys
sys.stdout.buffer.write(bytes(range(256)))
sys.stderr.buffer.write(b"\xff\xfe\n")

name = input("name? ")
print(f"hello {name}")
import sys
print(sys.stdin.buffer.read())

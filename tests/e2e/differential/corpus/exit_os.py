import atexit, os, sys
atexit.register(print, "never")
sys.stdout.write("buffered")
os._exit(7)

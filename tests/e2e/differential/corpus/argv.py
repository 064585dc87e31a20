import sys
print(__name__, sys.argv, __file__, sys.path[0], sys.orig_argv)
print(__doc__, __package__, __spec__, __builtins__, type(__loader__), __cached__ if "__cached__" in globals() else "-")

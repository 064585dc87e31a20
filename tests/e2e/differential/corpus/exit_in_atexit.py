import atexit, sys
def first(): print("first registered, last run")
def second(): raise ValueError("in atexit")
atexit.register(first); atexit.register(second)
sys.exit(4)

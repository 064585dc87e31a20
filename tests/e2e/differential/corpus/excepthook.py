import sys
sys.excepthook = lambda t, v, tb: print("hook", t.__name__, v, tb.tb_lineno, tb.tb_next)
def f(): raise ValueError("x")
sys.displayhook("shown")
raise LookupError("y")

import inspect, sys, traceback
def f():
    traceback.print_stack(file=sys.stdout)
    return [x.filename + ":" + x.function for x in inspect.stack()]
print(f())
print(sys._getframe().f_back, sys._getframe().f_code.co_name, sys._getframe().f_code.co_filename)
print(inspect.getsource(f))
print(inspect.getsource(sys.modules["__main__"]))
print(inspect.getsourcefile(f), inspect.getfile(sys.modules["__main__"]))

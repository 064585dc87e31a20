import sys, dis
c = sys._getframe().f_code
print(c.co_name, c.co_filename, c.co_firstlineno, c.co_flags, c.co_names[:9], c.co_qualname)
def f(): pass
print(f.__code__.co_firstlineno, f.__code__.co_filename)
[f.__code__.co_positions()]

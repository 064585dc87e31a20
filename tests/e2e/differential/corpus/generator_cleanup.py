import weakref
class C:
    def __del__(self): print("deleted", type(self).__name__)
c = C()
weakref.finalize(c, print, "finalized")
def g():
    try: yield 1
    finally: print("closed")
i = g(); next(i)
d = C()
d.self = d

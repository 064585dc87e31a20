import atexit, json, logging, os, sys, threading
class C:
    def __init__(self, name): self.name = name
    def __del__(self): print("deleted", self.name)
class H(logging.Handler):
    def emit(self, record): print("handled", record.getMessage())
logging.getLogger().addHandler(H())
a = C("global"); json.mine = C("in json"); os.mine = C("in os"); threading.local().x = C("local")
atexit.register(logging.warning, "at exit")
def late():
    yield C("in generator")
g = late(); next(g)
cycle = C("cycle"); cycle.me = cycle

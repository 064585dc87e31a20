import sys, threading
t = threading.Thread(target=lambda: sys.exit(5))
t.start(); t.join()
def boom(): raise ValueError("in a thread")
t = threading.Thread(target=boom, name="worker"); t.start(); t.join()
print("main goes on")

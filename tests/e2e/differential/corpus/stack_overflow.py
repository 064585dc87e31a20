import sys
sys.setrecursionlimit(10**6)
class A:
    def __getattr__(self, n): return getattr(self, n)
try:
    A().x
except RecursionError as e:
    print("caught", type(e).__name__)

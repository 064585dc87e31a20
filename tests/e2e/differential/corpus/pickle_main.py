import pickle
class C:
    def __init__(self, x): self.x = x
data = pickle.dumps(C(3))
print(b"__main__" in data, pickle.loads(data).x)
C

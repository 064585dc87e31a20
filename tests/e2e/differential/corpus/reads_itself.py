import hashlib, os
print(hashlib.sha256(open(__file__, "rb").read()).hexdigest(), os.stat("main.py").st_size, oct(os.stat("main.py").st_mode))
print(open("main.py").read())
print(sorted(os.listdir()))
len(os.listdir())

import warnings
warnings.warn("careful")
warnings.warn("old", DeprecationWarning)
x = 1
print(x is 1)
"\d"
f = open("main.py")
del f

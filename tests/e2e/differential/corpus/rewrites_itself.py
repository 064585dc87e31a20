import os
with open(__file__, "a") as f: f.write("# more\n")
os.rename("main.py", "other.py")
print(os.listdir())
1 / 0

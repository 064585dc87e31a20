import os, pathlib
os.makedirs("out/deep")
pathlib.Path("out/a.csv").write_text("x,y\n1,2\n")
pathlib.Path("out/deep/b.bin").write_bytes(bytes(range(256)))
with open("given.txt") as f: print(f.read())
with open("given.txt", "a") as f: f.write("more")
print(sorted(p for p in os.listdir(".") if p != "main.sh"))

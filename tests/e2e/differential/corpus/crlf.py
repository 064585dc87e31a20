x = """a
b"""
print(repr(x))
if x:
    print("crlf")
len(x)

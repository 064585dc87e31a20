print(list(globals()))
for k, v in list(globals().items()):
    if k not in ("__loader__", "__builtins__", "__spec__"): print(k, v)
print(__loader__.name, __loader__.path, vars(__builtins__) is vars(__import__("builtins")))

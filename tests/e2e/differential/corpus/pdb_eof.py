x = 1
breakpoint()
print("unreached?")

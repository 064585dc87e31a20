print(1)
if 1:
    print(2)
    2
x = "\d"
print(x is 1)
x

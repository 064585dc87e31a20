print(1)
# form feed:
print(2)

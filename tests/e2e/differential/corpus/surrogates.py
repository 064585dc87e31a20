print("before")
print("\udcff lone")

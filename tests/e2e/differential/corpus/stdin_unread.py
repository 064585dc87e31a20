print("does not read")

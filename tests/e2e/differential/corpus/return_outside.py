print(1)
return 5

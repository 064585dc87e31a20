print("with a BOM", ascii("é"))
1

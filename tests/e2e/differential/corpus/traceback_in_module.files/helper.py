def explode(n):
    raise ValueError(f"boom {n}")

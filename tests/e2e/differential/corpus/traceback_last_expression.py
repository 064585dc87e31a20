x = [1, 2]
(lambda v:
    v[5])(x)

# -*- coding: latin-1 -*-
s = "é"
print(ascii(s), len(s))
len(s)

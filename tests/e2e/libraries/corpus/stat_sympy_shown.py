# expects results=text/latex
from sympy import Integral, symbols
x = symbols("x")
Integral(x**2, (x, 0, 1))

from sympy import Eq, diff, integrate, latex, limit, oo, solve, symbols, sin
x, y = symbols("x y")
assert solve([Eq(x + y, 5), Eq(x - y, 1)]) == {x: 3, y: 2}
assert diff(x**3 * sin(x), x).subs(x, 0) == 0
assert integrate(x**2, (x, 0, 3)) == 9 and limit(sin(x) / x, x, 0) == 1 and limit(1 / x, x, oo) == 0
print(latex(integrate(1 / (1 + x**2), x)))

import numpy as np
from scipy.optimize import curve_fit, linprog, minimize
x = np.linspace(0, 4, 60)
popt, _ = curve_fit(lambda t, a, b: a * np.exp(-b * t), x, 2.5 * np.exp(-1.3 * x))
assert np.allclose(popt, [2.5, 1.3])
assert abs(minimize(lambda v: (v[0] - 1) ** 2 + (v[1] + 2) ** 2, [0, 0]).fun) < 1e-6
assert linprog([-1, -2], A_ub=[[1, 1]], b_ub=[4]).x[1] == 4

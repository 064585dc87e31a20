# expects results=image/png
import matplotlib.pyplot as plt
from scipy.integrate import quad, solve_ivp
assert abs(quad(lambda x: x**2, 0, 3)[0] - 9) < 1e-9
run = solve_ivp(lambda t, y: [y[0] * (1 - y[1]), y[1] * (y[0] - 1)], (0, 15), [2, 1], max_step=0.05)
plt.plot(run.t, run.y.T)
plt.show()

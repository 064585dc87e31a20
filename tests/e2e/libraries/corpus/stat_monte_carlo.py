import numpy as np
points = np.random.default_rng(7).random((1_000_000, 2))
pi = 4 * np.mean((points**2).sum(axis=1) < 1)
assert abs(pi - np.pi) < 0.01
print(pi)

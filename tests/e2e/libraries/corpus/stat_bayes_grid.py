import numpy as np
from scipy.stats import beta, binom
p = np.linspace(0, 1, 1001)
posterior = binom.pmf(7, 10, p)
posterior /= posterior.sum()
assert abs((p * posterior).sum() - beta(8, 4).mean()) < 1e-3

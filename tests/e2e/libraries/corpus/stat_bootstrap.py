import numpy as np
from scipy.stats import bootstrap
data = np.random.default_rng(0).exponential(2, 200)
low, high = bootstrap((data,), np.mean, n_resamples=500, random_state=0).confidence_interval
assert low < 2 < high or abs(low - 2) < 0.5

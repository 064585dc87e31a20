import numpy as np
from scipy import stats
a, b = np.random.default_rng(0).normal([[0], [0.8]], 1, (2, 80))
result = stats.ttest_ind(a, b)
assert result.pvalue < 0.01
print(stats.describe(a), stats.mannwhitneyu(a, b), stats.shapiro(a), sep="\n")

import numpy as np
import statsmodels.api as sm
x = np.linspace(0, 10, 50)
y = 3 + 2 * x + np.random.default_rng(0).normal(size=50)
model = sm.OLS(y, sm.add_constant(x)).fit()
assert abs(model.params[1] - 2) < 0.2
print(model.summary())

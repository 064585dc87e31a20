import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
rng = np.random.default_rng(1)
df = pd.DataFrame({"x": rng.normal(size=200), "group": rng.choice(["a", "b"], 200)})
df["y"] = (rng.random(200) < 1 / (1 + np.exp(-2 * df.x))).astype(int)
fit = smf.logit("y ~ x + C(group)", df).fit(disp=False)
assert fit.params["x"] > 1

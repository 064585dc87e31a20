import pandas as pd
from scipy.stats import chi2_contingency
df = pd.DataFrame({"sex": ["f"] * 60 + ["m"] * 60, "likes": [1] * 45 + [0] * 15 + [1] * 20 + [0] * 40})
chi2, p, dof, _ = chi2_contingency(pd.crosstab(df.sex, df.likes))
assert dof == 1 and p < 0.001

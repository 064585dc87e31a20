import numpy as np, pandas as pd
print(np.arange(6).reshape(2, 3).sum(axis=0))
d = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
print(d, d.describe(), sep="\n")
d

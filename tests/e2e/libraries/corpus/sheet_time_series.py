# expects results=image/png
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
days = pd.date_range("2025-01-01", periods=365, freq="D")
s = pd.Series(np.random.default_rng(0).normal(size=365).cumsum(), index=days)
monthly = s.resample("ME").mean()
assert len(monthly) == 12
ax = s.plot(label="daily")
s.rolling(30).mean().plot(ax=ax, label="30 days")
ax.legend()
plt.show()

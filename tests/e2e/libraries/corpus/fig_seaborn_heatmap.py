# expects results=image/png
import numpy as np
import pandas as pd
import seaborn as sns
import matplotlib.pyplot as plt
df = pd.DataFrame(np.random.default_rng(2).normal(size=(100, 4)), columns=list("abcd"))
sns.heatmap(df.corr(), annot=True, cmap="coolwarm")
plt.show()

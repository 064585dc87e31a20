# expects results=image/png
import numpy as np
import seaborn as sns
import matplotlib.pyplot as plt
rng = np.random.default_rng(3)
fig, axes = plt.subplots(1, 3, figsize=(12, 3))
sns.violinplot(y=rng.normal(size=100), ax=axes[0])
sns.kdeplot(x=rng.normal(size=100), fill=True, ax=axes[1])
sns.regplot(x=np.arange(30), y=np.arange(30) + rng.normal(size=30), ax=axes[2])
plt.show()

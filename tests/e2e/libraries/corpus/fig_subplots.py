# expects results=image/png
import matplotlib.pyplot as plt
import numpy as np
rng = np.random.default_rng(1)
fig, axes = plt.subplots(2, 2, figsize=(8, 6), constrained_layout=True)
axes[0, 0].hist(rng.normal(size=500), bins=30)
axes[0, 1].scatter(rng.random(50), rng.random(50), c=rng.random(50))
axes[1, 0].boxplot([rng.normal(size=50), rng.normal(1, size=50)])
axes[1, 1].imshow(rng.random((10, 10)), cmap="magma")
plt.show()

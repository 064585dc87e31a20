# expects results=image/png
import matplotlib.pyplot as plt
import numpy as np
from skimage import filters, measure
y, x = np.mgrid[:100, :100]
coins = ((x - 30) ** 2 + (y - 30) ** 2 < 200) | ((x - 70) ** 2 + (y - 60) ** 2 < 300)
labels = measure.label(coins)
assert labels.max() == 2
plt.imshow(filters.sobel(coins.astype(float)))
plt.show()

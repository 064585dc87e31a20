import numpy as np
from scipy import ndimage
image = np.zeros((20, 20))
image[5:8, 5:8] = image[12:16, 12:16] = 1
_, count = ndimage.label(image)
assert count == 2 and ndimage.gaussian_filter(image, 1).max() < 1

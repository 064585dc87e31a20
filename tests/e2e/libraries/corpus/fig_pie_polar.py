# expects results=image/png
import matplotlib.pyplot as plt
import numpy as np
fig = plt.figure(figsize=(8, 4))
fig.add_subplot(121).pie([40, 35, 25], labels=["x", "y", "z"], autopct="%1.0f%%")
fig.add_subplot(122, projection="polar").plot(np.linspace(0, 6.28, 100), np.linspace(0, 1, 100))
plt.show()

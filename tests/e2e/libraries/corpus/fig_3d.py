# expects results=image/png
import matplotlib.pyplot as plt
import numpy as np
x, y = np.meshgrid(np.linspace(-2, 2, 40), np.linspace(-2, 2, 40))
ax = plt.figure().add_subplot(projection="3d")
ax.plot_surface(x, y, np.exp(-(x**2 + y**2)), cmap="viridis")
plt.show()

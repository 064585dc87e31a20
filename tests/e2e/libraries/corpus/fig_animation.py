# expects artifacts=wave.gif
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
fig, ax = plt.subplots(figsize=(3, 2))
x = np.linspace(0, 6.28, 50)
(line,) = ax.plot(x, np.sin(x))
FuncAnimation(fig, lambda i: line.set_ydata(np.sin(x + i / 3)), frames=6).save("wave.gif", writer=PillowWriter(fps=5))
plt.close()

# expects artifacts=plot.svg,plot.png
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.style.use("ggplot")
plt.plot([1, 3, 2])
plt.savefig("plot.svg")
plt.savefig("plot.png", dpi=150)
plt.close()

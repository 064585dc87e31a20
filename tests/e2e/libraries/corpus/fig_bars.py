# expects results=image/png
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(6, 3))
bars = ax.bar(["a", "b", "c"], [3, 7, 5], color=["#4e79a7", "#f28e2b", "#e15759"])
ax.bar_label(bars)
plt.tight_layout()
plt.show()

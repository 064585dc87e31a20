# expects results=image/png
import pandas as pd
import seaborn as sns
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
sns.set_theme(style="whitegrid")
iris = load_iris(as_frame=True).frame
sns.pairplot(iris, hue="target", vars=iris.columns[:2])
plt.show()

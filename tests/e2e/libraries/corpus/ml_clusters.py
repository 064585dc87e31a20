# expects results=image/png
import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
X, _ = make_blobs(200, n_features=5, centers=3, random_state=0)
labels = KMeans(3, n_init=10, random_state=0).fit_predict(X)
flat = PCA(2).fit_transform(X)
plt.scatter(*flat.T, c=labels)
plt.show()

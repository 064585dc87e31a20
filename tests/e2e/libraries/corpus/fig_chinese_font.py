# expects results=image/png
import warnings
import matplotlib.pyplot as plt
warnings.simplefilter("error")
plt.rcParams["font.sans-serif"] = ["SimHei"]
plt.rcParams["axes.unicode_minus"] = False
plt.bar(["北京", "上海"], [-3, 5])
plt.title("城市")
plt.show()

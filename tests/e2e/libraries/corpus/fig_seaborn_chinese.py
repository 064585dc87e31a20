# expects results=image/png
import warnings
import seaborn as sns
import matplotlib.pyplot as plt
warnings.simplefilter("error")
sns.set_theme()
plt.title("销售额 売上 매출 बिक्री مبيعات 🎉")
plt.plot([1, 2, 3])
plt.show()

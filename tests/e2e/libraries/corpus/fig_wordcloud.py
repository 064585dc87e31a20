# expects results=image/png
import matplotlib.pyplot as plt
from wordcloud import WordCloud
cloud = WordCloud(width=400, height=200).generate("data data data warm pool pool sandbox run run run code")
plt.imshow(cloud)
plt.axis("off")
plt.show()

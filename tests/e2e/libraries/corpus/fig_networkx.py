# expects results=image/png
import matplotlib.pyplot as plt
import networkx as nx
graph = nx.karate_club_graph()
nx.draw(graph, nx.spring_layout(graph, seed=1), node_size=80, with_labels=True)
plt.show()

import networkx as nx
roads = nx.Graph()
roads.add_weighted_edges_from([("a", "b", 4), ("a", "c", 2), ("c", "b", 1), ("b", "d", 5)])
assert nx.shortest_path(roads, "a", "d", weight="weight") == ["a", "c", "b", "d"]
assert nx.pagerank(roads)["b"] > nx.pagerank(roads)["d"]

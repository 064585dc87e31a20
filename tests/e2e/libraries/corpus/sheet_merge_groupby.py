import pandas as pd
orders = pd.DataFrame({"customer": [1, 2, 1, 3], "total": [10.0, 20.0, 5.0, 7.5]})
people = pd.DataFrame({"customer": [1, 2, 3], "name": ["Ann", "Bob", "Cy"]})
sums = orders.merge(people).groupby("name")["total"].agg(["sum", "mean", "count"])
assert sums.loc["Ann", "sum"] == 15
print(sums.to_markdown())

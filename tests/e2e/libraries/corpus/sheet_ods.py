# expects artifacts=table.ods
import pandas as pd
df = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
df.to_excel("table.ods", engine="odf", index=False)
assert pd.read_excel("table.ods", engine="odf").shape == (2, 2)

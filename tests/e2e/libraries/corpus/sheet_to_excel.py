# expects artifacts=sales.xlsx
import pandas as pd
df = pd.DataFrame({"region": ["north", "south", "east"], "sales": [120, 340, 90]})
df.to_excel("sales.xlsx", index=False)
back = pd.read_excel("sales.xlsx")
assert back.equals(df)
print(back)

# expects results=text/html
import io
import pandas as pd
csv = "day,shop,amount\nMon,A,10\nMon,B,20\nTue,A,5\nTue,B,7\n"
df = pd.read_csv(io.StringIO(csv))
table = df.pivot_table(index="day", columns="shop", values="amount", aggfunc="sum", margins=True)
assert table.loc["All", "All"] == 42
table

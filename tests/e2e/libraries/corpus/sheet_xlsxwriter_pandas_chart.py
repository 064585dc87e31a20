# expects artifacts=line.xlsx
import numpy as np
import pandas as pd
df = pd.DataFrame({"x": np.arange(20), "y": np.sin(np.arange(20) / 3)})
with pd.ExcelWriter("line.xlsx", engine="xlsxwriter") as writer:
    df.to_excel(writer, sheet_name="s", index=False)
    chart = writer.book.add_chart({"type": "line"})
    chart.add_series({"values": ["s", 1, 1, 20, 1]})
    writer.sheets["s"].insert_chart("D2", chart)

# expects artifacts=book.xlsx
import pandas as pd
with pd.ExcelWriter("book.xlsx") as writer:
    for year in (2023, 2024, 2025):
        pd.DataFrame({"month": range(1, 13), "value": [year % 100 * m for m in range(1, 13)]}).to_excel(writer, sheet_name=str(year))
sheets = pd.read_excel("book.xlsx", sheet_name=None)
assert list(sheets) == ["2023", "2024", "2025"]

import sqlite3
import pandas as pd
con = sqlite3.connect(":memory:")
pd.DataFrame({"id": [1, 2, 3], "score": [90, 75, 60]}).to_sql("grades", con, index=False)
best = pd.read_sql("SELECT max(score) AS best FROM grades", con)
assert best.best[0] == 90

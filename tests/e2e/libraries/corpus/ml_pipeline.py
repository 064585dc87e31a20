from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
import pandas as pd
df = pd.DataFrame({"age": [20, 30, 40, 50] * 10, "city": ["a", "b"] * 20, "buys": [0, 0, 1, 1] * 10})
steps = ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["city"])])
model = make_pipeline(steps, LogisticRegression()).fit(df[["age", "city"]], df.buys)
assert model.score(df[["age", "city"]], df.buys) == 1

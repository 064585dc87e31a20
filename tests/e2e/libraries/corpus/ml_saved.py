# expects artifacts=model.joblib
import joblib
import numpy as np
from sklearn.tree import DecisionTreeRegressor
model = DecisionTreeRegressor().fit(np.arange(10)[:, None], np.arange(10))
joblib.dump(model, "model.joblib")
assert joblib.load("model.joblib").predict([[4]])[0] == 4

from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
X, y = load_diabetes(return_X_y=True)
search = GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv=5).fit(X, y)
assert search.best_score_ > 0.4

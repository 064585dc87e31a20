from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
X, y = load_digits(return_X_y=True)
scores = cross_val_score(RandomForestClassifier(20, n_jobs=2, random_state=0), X, y, cv=3, n_jobs=2)
assert scores.mean() > 0.85

import numpy as np
from statsmodels.tsa.arima.model import ARIMA
series = np.random.default_rng(0).normal(size=120).cumsum()
forecast = ARIMA(series, order=(1, 1, 1)).fit().forecast(5)
assert len(forecast) == 5 and np.isfinite(forecast).all()

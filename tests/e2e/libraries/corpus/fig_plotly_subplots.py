# expects results=application/vnd.plotly.v1+json
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
fig = make_subplots(rows=1, cols=2, subplot_titles=["heat", "box"])
fig.add_trace(go.Heatmap(z=np.random.default_rng(0).random((5, 5))), row=1, col=1)
fig.add_trace(go.Box(y=[1, 2, 5, 9]), row=1, col=2)
fig.show()

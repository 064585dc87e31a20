# expects results=application/vnd.plotly.v1+json
import plotly.graph_objects as go
fig = go.Figure(go.Bar(x=["a", "b"], y=[1, 3]))
fig.add_trace(go.Scatter(x=["a", "b"], y=[2, 2], mode="lines"))
fig.update_layout(title="Both")
fig

# expects artifacts=chart.html
import plotly.express as px
px.line(x=[1, 2, 3], y=[3, 1, 2]).write_html("chart.html", include_plotlyjs="cdn")

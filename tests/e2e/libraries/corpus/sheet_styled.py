# expects results=text/html
import pandas as pd
df = pd.DataFrame({"a": [1, -2, 3], "b": [-1.5, 2.25, 0]})
df.style.format("{:.1f}").background_gradient(cmap="viridis").highlight_max(color="gold")

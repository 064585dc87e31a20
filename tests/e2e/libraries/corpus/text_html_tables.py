import io
import pandas as pd
html = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>x</td></tr></table>"
(table,) = pd.read_html(io.StringIO(html))
assert table.to_dict("records") == [{"a": 1, "b": "x"}]

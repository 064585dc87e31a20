# expects artifacts=report.html
import pandas as pd
from jinja2 import Template
df = pd.DataFrame({"kpi": ["a", "b"], "value": [1, 2]})
with open("report.html", "w") as f:
    f.write(Template("<h1>{{ title }}</h1>{{ table }}").render(title="Report", table=df.to_html(index=False)))

# expects results=text/html,application/json,text/latex
from IPython.display import HTML, JSON, Math, clear_output, display
clear_output(wait=True)
display(HTML("<b>bold</b>"), JSON({"a": [1, None]}), Math("x^2"))

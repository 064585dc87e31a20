# expects results=text/html
from IPython.display import HTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
HTML(highlight("def f(): return 1", PythonLexer(), HtmlFormatter(full=True)))

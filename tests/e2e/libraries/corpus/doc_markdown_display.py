# expects results=text/markdown
from IPython.display import Markdown, display
display(Markdown("## Summary\n- first\n- second"))

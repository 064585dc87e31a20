import markdown
html = markdown.markdown("# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", extensions=["tables", "fenced_code", "toc"])
assert "<table>" in html and 'id="title"' in html

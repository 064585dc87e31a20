from bs4 import BeautifulSoup
html = "<html><body><a href='/a'>one</a><table><tr><td>1</td><td>2</td></tr></table></body></html>"
for parser in ("html.parser", "lxml", "html5lib"):
    soup = BeautifulSoup(html, parser)
    assert soup.a["href"] == "/a" and [td.text for td in soup.select("td")] == ["1", "2"]

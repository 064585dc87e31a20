from jinja2 import Environment, Template
page = Template("<ul>{% for n in names %}<li>{{ n|e }}</li>{% endfor %}</ul>").render(names=["a", "<b>"])
assert page == "<ul><li>a</li><li>&lt;b&gt;</li></ul>"
assert Environment(autoescape=True).from_string("{{ x }}").render(x="&") == "&amp;"

import humanize
from num2words import num2words
assert num2words(42) == "forty-two" and num2words(42, lang="de") == "zweiundvierzig"
assert humanize.naturalsize(1_500_000) == "1.5 MB"

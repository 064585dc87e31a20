import locale
from babel.numbers import format_currency
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.format_string("%.2f", 1234567.891, grouping=True) == "1.234.567,89"
locale.setlocale(locale.LC_ALL, "en_US.UTF-8")
assert locale.currency(1234.5, grouping=True) == "$1,234.50"
assert format_currency(1234.5, "EUR", locale="fr_FR").endswith("€")

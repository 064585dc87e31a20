import arabic_reshaper
from bidi.algorithm import get_display
shown = get_display(arabic_reshaper.reshape("مرحبا"))
assert len(shown) == 5 and shown != "مرحبا"

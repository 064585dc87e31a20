import unicodedata
import emoji
from unidecode import unidecode
assert unidecode("Žluťoučký 北京") == "Zlutoucky Bei Jing "
assert emoji.demojize("🚀") == ":rocket:"
assert unicodedata.normalize("NFC", "e\u0301") == "é"
print("日本語 العربية हिन्दी 🎉")

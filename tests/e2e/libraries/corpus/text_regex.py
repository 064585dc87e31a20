import re
import regex
log = "2025-01-03 ERROR disk full\n2025-01-04 INFO ok"
assert re.findall(r"(?m)^(\S+) ERROR (.*)$", log) == [("2025-01-03", "disk full")]
assert regex.findall(r"\p{Lu}\p{Ll}+", "Élan Über alles") == ["Élan", "Über"]

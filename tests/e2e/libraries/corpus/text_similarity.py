import Levenshtein
from rapidfuzz import fuzz, process
assert Levenshtein.distance("kitten", "sitting") == 3
assert process.extractOne("appel", ["apple", "pear", "grape"], scorer=fuzz.ratio)[0] == "apple"

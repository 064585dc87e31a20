from collections import Counter
from nltk.stem import PorterStemmer
from nltk.tokenize import RegexpTokenizer
from nltk.util import ngrams
words = RegexpTokenizer(r"\w+").tokenize("Running runners ran; the runner runs.".lower())
stems = Counter(map(PorterStemmer().stem, words))
assert stems["run"] == 2
assert next(ngrams(words, 2)) == ("running", "runners")

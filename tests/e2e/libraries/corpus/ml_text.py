from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
texts = ["the cat sat", "a cat sat down", "stocks fell today"]
similar = cosine_similarity(TfidfVectorizer().fit_transform(texts))
assert similar[0, 1] > similar[0, 2]

from cachetools import LRUCache
from more_itertools import chunked, windowed
from sortedcontainers import SortedList
assert list(chunked(range(5), 2)) == [[0, 1], [2, 3], [4]]
assert list(windowed([1, 2, 3], 2)) == [(1, 2), (2, 3)]
assert SortedList([3, 1, 2]).bisect(2) == 2
cache = LRUCache(2)
cache.update(a=1, b=2)
cache["c"] = 3
assert "a" not in cache

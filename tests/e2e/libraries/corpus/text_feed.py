import feedparser
feed = feedparser.parse("<rss version='2.0'><channel><title>T</title><item><title>first</title></item></channel></rss>")
assert feed.entries[0].title == "first"

import requests
request = requests.Request("GET", "https://example.com/s", params={"q": "a b"}).prepare()
assert request.url == "https://example.com/s?q=a+b"
try:
    requests.get("https://example.com", timeout=2)
    raise SystemExit("there is a network")
except requests.exceptions.RequestException as e:
    print("no network:", type(e).__name__)

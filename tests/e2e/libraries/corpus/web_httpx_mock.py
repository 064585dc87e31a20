import httpx
transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"path": request.url.path}))
with httpx.Client(transport=transport) as client:
    assert client.get("https://api.test/v1/items").json() == {"path": "/v1/items"}

"""What the gateway says of itself."""


def test_openapi_document(http):
    """Is every route in the document, in version 3.1?"""
    document = http.get("/openapi").json()

    assert document["openapi"].startswith("3.1")
    assert "/topics" in document["paths"]


def test_life_signs(http, broker):
    """Do both signs of life answer, the second with the cluster's name?"""
    assert http.get("/healthy").json() == {"status": "ok"}
    assert http.get("/ready").json()["brokers"] == 1


def test_unknown_path(http):
    """Is a path that is not there answered with a number and a sentence?"""
    answer = http.get("/nothing")

    assert (answer.status_code, answer.json()["error_code"]) == (404, 404)
    assert "/openapi" in answer.json()["message"]


def test_foreign_host(http):
    """Is a name that is not ours refused, as a page of another site would use it?"""
    answer = http.get("/topics", headers={"host": "evil.example.org"})

    assert answer.status_code == 421


def test_no_cors_unless_configured(http):
    """Does no answer allow another origin?"""
    answer = http.get("/topics", headers={"origin": "https://elsewhere.example"})

    assert "access-control-allow-origin" not in answer.headers

"""What stands before the console: who may come in, and with how much."""

import httpx
import pytest


@pytest.fixture
def http(console):
    """A client that is no browser."""
    with httpx.Client(base_url=console.removesuffix("/console"), timeout=30) as client:
        yield client


def test_root_leads_to_the_console(http):
    """Does the gateway's address lead to the console, and still serve the API beside it?"""
    answer = http.get("/")

    assert (answer.status_code, answer.headers["location"]) == (307, "/console/")
    assert http.get("/healthy").json() == {"status": "ok"}


def test_unknown_page(http):
    """Is a page that is not there answered as such?"""
    assert http.get("/console/nowhere").status_code == 404


def test_foreign_name(http):
    """Is a page of another site that points its name here refused?"""
    assert http.get("/console/", headers={"host": "evil.example.org"}).status_code == 421


def test_foreign_origin(http):
    """May a page of another site neither open the socket nor read what it says, whatever the transport?"""
    path = "/console/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    answer = http.get(path, headers={"origin": "https://evil.example.org"})

    assert answer.status_code == 400
    assert "access-control-allow-origin" not in answer.headers


def test_too_large(http):
    """Is an upload beyond the limit refused before it is read?"""
    answer = http.post("/console/_nicegui/anything", content=b"x" * (9 * 1024 * 1024))

    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)


def test_no_other_host(http):
    """Does the page name no other host?"""
    text = http.get("/console/").text

    assert "https://" not in text.replace("https://www.w3.org", "")

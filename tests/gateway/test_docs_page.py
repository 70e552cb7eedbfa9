"""The page on which people read and try the API."""

import base64
import hashlib
import re
import shutil

import pytest

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def page(gateway):
    """The page in a real browser, with what it complained of."""
    if CHROMIUM is None:
        pytest.skip("no chromium to look at the page with")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.complaints = []
        opened.on("console", lambda said: opened.complaints.append(said.text) if said.type == "error" else None)
        opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
        yield opened
        browser.close()


def test_nothing_from_elsewhere(http):
    """Does the page name no other host, and may a browser run exactly what stands in it?"""
    answer = http.get("/docs")
    policy = answer.headers["content-security-policy"]
    inline = re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", answer.text, re.DOTALL)

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "://" not in answer.text
    assert "default-src 'none'" in policy
    assert len(inline) == 2
    for text in inline:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


@pytest.mark.slow
def test_every_operation_is_listed(page, http, gateway):
    """Does a browser list every operation without a complaint, and narrow the list by words?"""
    page.goto(f"{gateway.url}/docs")
    count = sum(len(methods) for methods in http.get("/openapi").json()["paths"].values())
    page.wait_for_selector("#list a")

    assert page.locator("#list a").count() == count
    page.fill("#filter", "post records")
    assert page.locator("#list a").count() < count
    assert page.complaints == []


@pytest.mark.slow
def test_a_request_is_tried(page, http, gateway):
    """Does Send show the gateway's answer, and the curl command ask for the same?"""
    cluster_id = http.get("/v3/clusters").json()["data"][0]["cluster_id"]
    page.goto(f"{gateway.url}/docs#get_v3_clusters_cluster_id")
    page.get_by_label("cluster_id").fill(cluster_id)
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector("p.status:has-text('200')")

    assert f"'{gateway.url}/v3/clusters/{cluster_id}'" in page.get_by_label("curl").inner_text()
    assert '"kind": "KafkaCluster"' in page.locator("#page").inner_text()
    assert page.complaints == []


@pytest.mark.slow
def test_narrow_and_dark(page, gateway):
    """Does the page fit a phone, in the dark?"""
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(f"{gateway.url}/docs#post_v3_clusters_cluster_id_topics_topic_name_records")
    page.wait_for_selector("textarea")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert sum(int(number) for number in re.findall(r"\d+", ground)[:3]) < 150
    assert page.complaints == []

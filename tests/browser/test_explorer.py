"""The API explorer."""

from headrace.client.admin import KafkaAdmin


def test_a_request_is_tried(tab, console):
    """Are operations listed, found by a search, tried from the page, and said as curl, Python and a command?"""
    page = tab.open("/api")
    page.wait_for_selector(".ex-list button")
    page.fill(".ex-search", "/topics")
    page.click('.ex-list button:has(span:text-is("/topics")):has-text("GET")')
    page.click(".ex-send")

    page.wait_for_selector(".ex-status .is-good:has-text('200')")
    codes = page.inner_text(".ex-codes")
    base = console.removesuffix("/console")
    assert f"curl {base}/topics" in codes
    assert f'httpx.request("GET", "{base}/topics")' in codes
    assert "kafka-topics --list --bootstrap-server" in codes
    assert "op=get_topics" in page.evaluate("location.search")
    tab.shot("api")


def test_a_link_to_an_operation(tab):
    """Does the address of a chosen operation lead to it again?"""
    page = tab.open("/api?op=get_healthy")

    page.wait_for_selector(".ex-main header code:text-is('/healthy')")


def test_phone_explorer(phone):
    """Does the page fit a phone?"""
    page = phone.open("/api")
    page.wait_for_selector(".ex-main header")

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_destroys_asks(tab, broker, eventually):
    """Is a topic deleted from here only after a person has said so twice?"""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics(["explored"])
        page = tab.open("/api?op=delete_v3_clusters_cluster_id_topics_topic_name&p.topic_name=explored")
        page.wait_for_selector(".ex-main header:has-text('DELETE')")
        asked = []
        page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
        page.click(".ex-send")
        assert "explored" in admin.list_topics()

        page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
        page.click(".ex-send")
        eventually(lambda: "explored" not in admin.list_topics())

    assert [True, True] == [one.startswith("Really do this? DELETE") for one in asked]

"""The console without a mouse."""


def test_skip_link_and_keys(tab, eventually):
    """Does the first Tab lead to a link past the navigation, and do keys lead from page to page?"""
    page = tab.open("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "nicegui-skip-link"
    page.keyboard.press("Enter")
    eventually(lambda: page.evaluate("document.activeElement.tagName") == "MAIN")

    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/topics")
    page.wait_for_selector("main h1 >> text=Topics")


def test_focus_is_seen(tab):
    """Has a link that the keyboard reached a ring around it?"""
    page = tab.open("/topics")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")

    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"

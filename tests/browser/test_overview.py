"""The console's first page, and the house around it."""


def test_overview_opens(tab):
    """Does the page say how many brokers there are?"""
    page = tab.open("/")

    assert "controller is 1" in page.inner_text("main")


def test_dark_is_remembered(tab):
    """Does the switch turn to dark, and is the next page dark from the start?"""
    page = tab.open("/")
    page.click(".hr-theme")
    page.click(".hr-theme")
    page.wait_for_selector("body.body--dark")

    tab.open("/")

    page.wait_for_selector("body.body--dark")


def test_phone(phone):
    """Is the navigation behind a button at a phone's width, and does it lead on?"""
    page = phone.open("/")
    page.wait_for_selector(".hr-burger")
    assert not page.is_visible(".hr-nav-link >> text=Overview") or page.locator(".q-drawer--on-top").count() == 0
    page.click(".hr-burger")

    page.wait_for_selector(".hr-nav-link >> text=Overview")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

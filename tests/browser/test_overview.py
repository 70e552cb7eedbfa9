"""The console's first page, and the house around it."""

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic
from headrace.client.records import TopicPartition
from headrace.testing.cluster import Cluster


def test_overview_opens(tab):
    """Does the page say how many brokers there are?"""
    page = tab.open("/")

    assert "controller is 1" in page.inner_text("main")


def test_partitions_are_those_of_the_topics(own_tab):
    """Are topics and partitions counted alike, internal ones in neither?"""
    with Cluster() as cluster:
        with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=3)])
            # A group's first offset makes the internal topic that it is kept in.
            admin.alter_group_offsets("packers", {TopicPartition("orders", 0): 0})
            assert len(admin.list_topics()) == 2
        page = own_tab(cluster.bootstrap).open("/")

        page.wait_for_selector(".hr-figure:has-text('Topics') >> text='3 partitions'")
        assert "1" == page.inner_text(".hr-figure:has-text('Topics') .hr-figure-value")


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

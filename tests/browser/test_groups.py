"""The pages about groups, in a real browser."""

import uuid

import pytest

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic
from headrace.client.consumer import KafkaConsumer
from headrace.client.producer import KafkaProducer
from headrace.client.records import TopicPartition


@pytest.fixture
def admin(broker):
    """The other way to look at things."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as client:
        yield client


@pytest.fixture
def group(broker, admin):
    """A group that has read 4 of 10 records and has no members."""
    name = uuid.uuid4().hex[:8]
    topic, group_id = f"orders-{name}", f"packers-{name}"
    admin.create_topics([NewTopic(topic, num_partitions=1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(10):
            producer.send(topic, str(number).encode(), partition=0).get(30)
    admin.alter_group_offsets(group_id, {TopicPartition(topic, 0): 4})
    return group_id, topic


def join(consumer):
    """Poll until the consumer is a member of its group."""
    while not consumer.assignment():
        consumer.poll(timeout_ms=100)


def test_list(tab, group, eventually):
    """Does the list say how far a group is behind, in records and in time?"""
    page = tab.open(f"/groups?q={group[0]}")
    row = page.locator("tr", has_text=group[0])

    eventually(lambda: "Empty" in row.inner_text() and "\t6\t" in row.inner_text())
    eventually(lambda: row.inner_text().rstrip().endswith(" s"))


def test_group(tab, broker, group, eventually):
    """Does a group's page say its lag in each partition, and who reads it once somebody does?"""
    group_id, topic = group
    page = tab.open(f"/groups/{group_id}")
    assert "6" in page.locator("tr", has_text=f"{topic}-0").inner_text().split("\t")
    page.wait_for_selector("text=This group has no members")
    assert not page.locator("text=Nothing fits").count()
    eventually(lambda: page.locator(".hr-chart .hr-line").count() == 2)

    with KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, group_id=group_id, client_id="reader-7") as consumer:
        join(consumer)
        eventually(lambda: page.locator("tr", has_text="reader-7").count() >= 1)


def test_reset(tab, admin, group, eventually):
    """Does a reset show first what it would do and change nothing, and then do it?"""
    group_id, topic = group
    place = TopicPartition(topic, 0)
    page = tab.open(f"/groups/{group_id}/reset?to=latest")
    row = page.locator("tr", has_text=topic)
    eventually(lambda: row.inner_text().split("\t") == [group_id, topic, "0", "4", "10", "+6"])
    assert admin.list_group_offsets(group_id)[place].offset == 4

    page.click('[data-test="scenario"]')
    page.click(".q-menu >> text=To the beginning")
    eventually(lambda: row.inner_text().split("\t")[-2:] == ["0", "-4"])
    eventually(lambda: "to=earliest" in tab.url)
    page.click("text=Do this elsewhere")
    page.wait_for_selector(f"text=--reset-offsets --group {group_id} --all-topics --to-earliest --execute")
    page.click('[data-test="apply"]')

    page.wait_for_selector("text=1 offset set")
    assert admin.list_group_offsets(group_id)[place].offset == 0


def test_reset_on_a_phone(phone, group, eventually):
    """Does the plan say on a phone what would change, from what to what, without scrolling sideways?"""
    group_id, topic = group
    page = phone.open(f"/groups/{group_id}/reset?to=latest")
    row = page.locator("tr", has_text=topic)

    eventually(lambda: row.inner_text().split("\t") == [f"{topic}-0", "4", "10", "+6"])
    assert page.evaluate(
        "(() => { const one = document.querySelector('.hr-table .q-table__middle');"
        "return one.scrollWidth <= one.clientWidth; })()"
    )


def test_reset_of_a_group_at_work(tab, broker, group, eventually):
    """Is a group with members shown the plan, and not the deed?"""
    group_id, topic = group
    with KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, group_id=group_id) as consumer:
        join(consumer)
        page = tab.open(f"/groups/{group_id}/reset")
        page.wait_for_selector("text=Stop its members first")

        assert page.is_disabled('[data-test="apply"]')


def test_any_name(tab, admin, group):
    """Is a group with slashes and markup in its name shown by its name, on its own page?"""
    name = f'<img src=x onerror="boom()">/{group[0]}/?&#%'
    admin.alter_group_offsets(name, {TopicPartition(group[1], 0): 1})
    page = tab.open("/groups")
    page.get_by_role("link", name=name).click()
    page.wait_for_selector(f"tr >> text={group[1]}-0")

    assert page.inner_text("h1") == name
    page.click("text=Reset offsets")
    # The page before has a row of this topic too.
    page.wait_for_selector(f".hr-back >> text={group[0]}")
    assert page.inner_text(".hr-back") == f"‹ {name}"

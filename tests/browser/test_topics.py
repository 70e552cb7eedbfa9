"""The pages about topics, in a real browser."""

import json
import uuid
from pathlib import Path

import pytest

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic
from headrace.client.producer import KafkaProducer


@pytest.fixture
def topic(broker):
    """A topic of the test's own, with two partitions."""
    name = f"trucks-{uuid.uuid4().hex[:8]}"
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=2)])
    return name


@pytest.fixture
def send(broker, topic):
    """Puts records into it."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:

        def put(*values, key=None, partition=None):
            for value in values:
                raw = value if isinstance(value, bytes) else json.dumps(value).encode()
                producer.send(topic, raw, key=key, partition=partition, headers=[("source", b"gps")]).get(30)

        yield put


def values(page):
    """What the list shows, from the top."""
    return [json.loads(text) for text in page.locator(".hr-record-value").all_inner_texts()]


def test_list_and_search(tab, topic, eventually):
    """Is a topic in the list with its numbers, and does a search that is in the URL narrow it?"""
    page = tab.open("/topics")
    page.wait_for_selector(f"text={topic}")

    page.fill(".hr-search input", topic)
    eventually(lambda: page.locator(".hr-table tbody tr").count() == 1)
    eventually(lambda: f"q={topic}" in tab.url)

    tab.open(f"/topics?q={topic}")
    assert page.locator(".hr-table tbody tr").count() == 1


def test_create(tab, broker):
    """Does the dialog make a topic and lead to it, after it showed the command for it?"""
    name = f"made-{uuid.uuid4().hex[:8]}"
    page = tab.open("/topics")
    page.click("text=Create")
    page.fill('input[data-test="topic-name"]', name)
    page.click(".hr-dialog >> text=Do this elsewhere")
    page.wait_for_selector(
        f".hr-dialog >> text=kafka-topics --bootstrap-server {broker.bootstrap} --create --topic {name}"
    )
    tab.still()
    page.click('[data-test="submit"]')

    page.wait_for_url(f"**/topics/{name}")
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        assert name in admin.list_topics()


def test_bad_name_is_told(tab):
    """Does a name that cannot be give the broker's sentence, in the dialog?"""
    page = tab.open("/topics")
    page.click("text=Create")
    page.fill('input[data-test="topic-name"]', "not a name!")
    page.click('[data-test="submit"]')

    assert "not a name!" in page.wait_for_selector(".hr-problem >> visible=true").inner_text()


def test_live(tab, topic, send, eventually):
    """Does a record that is produced appear within a second or so, on top, without a reload?"""
    page = tab.open(f"/topics/{topic}?from=live")
    page.wait_for_selector('[data-test="status"] >> text=Live')

    send({"truck": "t-1", "speed": 80})
    eventually(lambda: values(page) == [{"truck": "t-1", "speed": 80}], 5.0)
    send({"truck": "t-2", "speed": 91})

    eventually(lambda: [one["truck"] for one in values(page)] == ["t-2", "t-1"], 5.0)


def test_pause_loses_nothing(tab, topic, send, eventually):
    """Does a paused view show nothing new, and everything once it goes on?"""
    page = tab.open(f"/topics/{topic}?from=live")
    page.wait_for_selector('[data-test="status"] >> text=Live')
    page.click('[data-test="pause"]')
    page.wait_for_selector('[data-test="status"] >> text=Paused')

    send(*({"n": number} for number in range(30)), partition=0)
    assert values(page) == []
    page.click('[data-test="pause"]')

    eventually(lambda: sorted(one["n"] for one in values(page)) == list(range(30)))


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="connections are counted as Linux lists them")
def test_leaving_hangs_up(tab, broker, topic, eventually):
    """Does the connection of a live view end when the person turns to something else?"""
    before = connections(broker)
    page = tab.open(f"/topics/{topic}?from=live")
    page.wait_for_selector('[data-test="status"] >> text=Live')
    eventually(lambda: connections(broker) - before)
    new = connections(broker) - before

    page.click("text=Consumers")

    eventually(lambda: new - connections(broker))


def connections(broker):
    """Who is connected to the broker: not how many, as those of the test before may still be on their way out."""
    port = int(broker.bootstrap.rpartition(":")[2])
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {line[2] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "01"}


def test_filter(tab, topic, send, eventually):
    """Does a filter narrow the list and stand in the URL, and is a bad one told with its column?"""
    send(*({"truck": f"t-{number}", "speed": 70 + number} for number in range(30)))
    page = tab.open(f"/topics/{topic}")
    eventually(lambda: len(values(page)) == 30)

    page.fill('[data-test="filter"]', "value.speed > 95")
    eventually(lambda: len(values(page)) == 4)
    eventually(lambda: "filter=value.speed" in tab.url)

    page.fill('[data-test="filter"]', "value.speed >")
    page.wait_for_selector(".hr-filter >> text=column")


def test_opened_record(tab, topic, send):
    """Does a record open where it stands, with its headers, and does its link show it alone?"""
    send({"truck": "t-1", "speed": 80}, key=b"t-1")
    page = tab.open(f"/topics/{topic}")
    page.click(".hr-record-line")

    detail = page.wait_for_selector(".hr-record-detail pre.hr-value")
    assert json.loads(detail.inner_text()) == {"truck": "t-1", "speed": 80}
    assert "gps" in page.inner_text(".hr-headers")
    page.click(".hr-choice >> text=hex")
    page.wait_for_selector("pre.hr-value >> text=00000000")
    page.click(".hr-record-tools >> text=Link")
    page.wait_for_url("**from=offset**")
    page.wait_for_selector(".hr-record-line")


def test_produce_and_export(tab, topic, eventually):
    """Is a record that was typed in stored, and is it in the file that is exported?"""
    page = tab.open(f"/topics/{topic}?from=live")
    page.wait_for_selector('[data-test="status"] >> text=Live')
    page.click("text=Produce")
    page.fill('input[data-test="key"]', "t-9")
    page.fill('textarea[data-test="value"]', '{"speed":77}')
    page.click('[data-test="submit"]')
    eventually(lambda: values(page) == [{"speed": 77}])

    page.click("text=Export")
    with page.expect_download() as download:
        page.click("text=JSON lines")

    (line,) = download.value.path().read_text().splitlines()
    assert (json.loads(line)["key"], json.loads(line)["value"]) == ("t-9", {"speed": 77})


def test_import(tab, topic, eventually):
    """Are lines stored as records, and nothing of them if one is bad?"""
    page = tab.open(f"/topics/{topic}?from=live")
    page.wait_for_selector('[data-test="status"] >> text=Live')
    page.click('button[aria-label="More"]')
    page.click("text=Import records")
    page.fill('textarea[data-test="lines"]', '{"key": "a", "value": {"n": 1}}\nnonsense')
    page.click('[data-test="submit"]')
    assert "Line 2" in page.wait_for_selector(".hr-problem >> visible=true").inner_text()

    page.fill('textarea[data-test="lines"]', '{"key": "a", "value": {"n": 1}}\n{"key": "a", "value": {"n": 2}}')
    page.click(".hr-dialog >> text=Do this elsewhere")
    eventually(lambda: """value=b'{"n":2}', key=b'a'""" in page.inner_text(".hr-dialog .hr-codes"))
    tab.still()
    page.click('[data-test="submit"]')

    eventually(lambda: [one["n"] for one in values(page)] == [2, 1])


def test_partitions_and_settings(tab, topic, send, eventually):
    """Do the tabs have URLs of their own, and does a changed setting stay?"""
    send({"n": 1}, partition=1)
    page = tab.open(f"/topics/{topic}?tab=partitions")
    assert page.locator(".hr-table tbody tr").count() == 2

    page.click("text=Settings")
    page.wait_for_selector("text=retention.ms")
    assert "tab=configs" in tab.url
    page.fill(".hr-search input", "max.message.bytes")
    eventually(lambda: page.locator(".hr-table tbody tr").count() == 1)
    page.click("td button >> text=max.message.bytes")
    page.fill(".hr-dialog input >> nth=0", "3600000")
    page.click('[data-test="submit"]')

    row = page.locator("tr", has_text="max.message.bytes")
    eventually(lambda: "3600000" in row.inner_text() and "this topic" in row.inner_text())


def test_delete_asks_for_the_name(tab, broker, topic):
    """Is a topic deleted only after its name was typed?"""
    page = tab.open(f"/topics/{topic}")
    page.click('button[aria-label="More"]')
    page.click("text=Delete topic…")
    button = page.locator(".hr-dialog button", has_text="Delete topic")
    assert button.is_disabled()
    page.fill(".hr-dialog input >> nth=0", topic)
    button.click()

    page.wait_for_url("**/topics")
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        assert topic not in admin.list_topics()

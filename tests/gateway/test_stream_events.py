"""Streams as server-sent events and as lines, over real sockets."""

import contextlib
import itertools
import json
import threading
import time

import httpx
import pytest

from gateway.streaming import Log, events, get, lines, raw
from headrace.client.producer import KafkaProducer
from headrace.testing.gateway_thread import GatewayThread

pytestmark = pytest.mark.slow


@pytest.fixture
def log(writer):
    """A topic with two partitions."""
    return Log(writer, partitions=2)


def test_first_bytes(gateway, log):
    """Does a stream open at once, with the head EventSource wants and a comment before all else?"""
    with raw(gateway.url, log.topic) as answer:
        first = next(answer.iter_raw())

    assert 200 == answer.status_code
    assert first.startswith(f":ok\n\nretry: 1000\nid: {log.topic}:0=0,1=0\n\n".encode())
    assert "text/event-stream; charset=utf-8" == answer.headers["content-type"]
    assert "no-cache" == answer.headers["cache-control"]


def test_head_alone(gateway, log):
    """Is a HEAD answered with the head of a stream, and not with a stream?"""
    answer = httpx.head(f"{gateway.url}/stream/{log.topic}", timeout=20)

    assert (200, "text/event-stream; charset=utf-8") == (answer.status_code, answer.headers["content-type"])


def test_live(gateway, log):
    """Does a record come to who was there before it, with all that belongs to it?"""
    with events(gateway.url, log.topic) as source:
        log.send({"n": 1}, key="t-1", partition=1, headers=[("source", b"gps")], timestamp_ms=1_700_000_000_000)
        (event,) = source.take(1)

    assert ("message", f"{log.topic}:0=0,1=1") == (event.name, event.id)
    assert {
        "topic": log.topic,
        "partition": 1,
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "key": "t-1",
        "value": {"n": 1},
        "headers": [{"name": "source", "value": "gps"}],
    } == event.data


@pytest.mark.parametrize("ids", ["compact", "json"])
@pytest.mark.parametrize("by", ["header", "query"])
def test_resume(gateway, log, ids, by):
    """Does the id of any event go on exactly behind it, in either form, in the header or the query?"""
    log.send(*range(20))
    log.send(*range(20, 40), partition=1)
    with events(gateway.url, log.topic, since="earliest", ids=ids) as source:
        seen = source.take(13)
    while len(seen) < 40:
        last = {"last_id": seen[-1].id} if by == "header" else {"last_event_id": seen[-1].id}
        with events(gateway.url, log.topic, ids=ids, **last) as source:
            seen += source.take(min(7, 40 - len(seen)))

    assert list(range(40)) == sorted(event.data["value"] for event in seen)


def test_resume_from_a_time(gateway, log):
    """Does an id with a time, as another cluster gave it, begin with the first record since then?"""
    for n in range(5):
        log.send(n, partition=0, timestamp_ms=1_700_000_000_000 + n)

    with events(gateway.url, log.topic, last_id=f"{log.topic}:0=@1700000000003,1=@1700000000003") as source:
        assert [3, 4] == source.values(2)


def test_since_and_until(gateway, log):
    """Do both ends cut at their time, and does a stream with an end come to it?"""
    for n in range(10):
        log.send(n, partition=n % 2, timestamp_ms=1_700_000_000_000 + n)

    def read(**query):
        return sorted(line["value"] for line in lines(gateway.url, log.topic, **query))

    assert list(range(10)) == read(since="earliest", until="latest")
    assert list(range(4, 10)) == read(since="1700000000004", until="latest")
    assert list(range(4, 7)) == read(since="1700000000004", until="1700000000007")
    assert list(range(4, 7)) == read(since="2023-11-14T22:13:20.004Z", until="2023-11-14T22:13:20.007Z")
    assert [] == read(since="latest", until="latest")
    assert [] == read(since="-5m", until="latest")


def test_until_ahead(gateway, log):
    """Does a stream whose end lies ahead show what comes, and end when the time is there?"""
    ahead_ms = 1500
    while True:
        until_ms = int(time.time() * 1000) + ahead_ms
        with events(gateway.url, log.topic, until=str(until_ms)) as source:
            log.send(1)
            left_ms = until_ms - time.time() * 1000
            told = list(source)
        if left_ms > 1000:
            break
        ahead_ms *= 2  # on a busy machine the end may be there before the record

    assert [("message", 1), ("end", None)] == [(event.name, event.data.get("value")) for event in told]
    assert "until" == told[-1].data["reason"]


def test_no_end_without_end(gateway, log):
    """Is a browser that comes again after the end told to stay away?"""
    log.send(1, 2, partition=0)
    with events(gateway.url, log.topic, since="earliest", until="latest") as source:
        end = list(source)[-1]

    assert ("end", {"reason": "until"}, f"{log.topic}:0=2,1=0") == end
    with events(gateway.url, log.topic, until="-1m", last_id=end.id) as source:
        assert 204 == source.response.status_code


def test_max(gateway, log):
    """Does a stream end after so many records, and go on from there?"""
    log.send(*range(10), partition=0)
    with events(gateway.url, log.topic, since="earliest", max=3) as source:
        *records, end = list(source)
    with events(gateway.url, log.topic, last_id=end.id, max=1) as source:
        records += source.take(1)

    assert [0, 1, 2, 3] == [event.data["value"] for event in records]
    assert {"reason": "max"} == end.data


def test_max_over_partitions(gateway, log):
    """Is `max` the number of records in all partitions together, and does each part go on where the last ended?"""
    for number in range(2):
        log.send(*range(5), partition=number)
    parts, last_id = [], f"{log.topic}:0=0,1=0"
    for _ in range(4):
        with events(gateway.url, log.topic, last_id=last_id, max=3, until="latest") as source:
            *records, end = list(source)
        parts.append([(event.data["partition"], event.data["value"]) for event in records])
        last_id = end.id

    assert [3, 3, 3, 1] == [len(part) for part in parts]
    assert [(number, value) for number in range(2) for value in range(5)] == sorted(itertools.chain(*parts))


def test_choosing(gateway, log):
    """Do partition, key and filter each narrow what comes?"""
    for n in range(9):
        log.send({"n": n, "even": n % 2 == 0}, key=f"k{n % 3}", partition=n % 2)

    def read(**query):
        found = lines(gateway.url, log.topic, since="earliest", until="latest", **query)
        return sorted(line["value"]["n"] for line in found)

    assert [1, 3, 5, 7] == read(partition="1")
    assert list(range(9)) == read(partition="0,1")
    assert [1, 4, 7] == read(key="k1")
    assert [6, 7, 8] == read(filter="value.n > 5")
    assert [4] == read(filter='value.even and key == "k1"')
    assert [7] == read(key="k1", partition="1", filter="value.n >= 5")
    assert [] == read(filter="value.nothing == 1")


def test_choosing_live(gateway, log):
    """Does each of several who follow the end get what it chose, and nothing twice?"""
    choices = [
        {},
        {"key": "k1"},
        {"key": "k1", "filter": "value.even"},
        {"filter": "value.even"},
        {"filter": "value.even"},
        {"filter": "value.n > 8"},
    ]
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(events(gateway.url, log.topic, **choice)) for choice in choices]
        for n in range(12):
            log.send({"n": n, "even": n % 2 == 0}, key=f"k{n % 3}", partition=0)
        log.send({"n": 99, "even": True}, key="k1", partition=0)
        seen = []
        for source in sources:
            numbers = (event.data["value"]["n"] for event in source)
            seen.append(list(itertools.takewhile(lambda n: n != 99, numbers)))
            assert f"{log.topic}:0=13,1=0" == source.last_id

    even = [0, 2, 4, 6, 8, 10]
    assert [list(range(12)), [1, 4, 7, 10], [4, 10], even, even, [9, 10, 11]] == seen


def test_several_topics(gateway, writer, log):
    """Do several topics come in one stream, with one position for all?"""
    other = Log(writer)
    log.send(1, partition=0)
    other.send(2)
    with events(gateway.url, f"{log.topic},{other.topic}", since="earliest") as source:
        both = source.take(2)

    assert {(log.topic, 1), (other.topic, 2)} == {(event.data["topic"], event.data["value"]) for event in both}
    assert f"{log.topic}:0=1,1=0;{other.topic}:0=1" == both[-1].id


def test_lines(gateway, log):
    """Does an Accept of JSON give lines, one per record, of the value alone if so wanted?"""
    log.send({"a": 1}, b"text", b"\xff", partition=0)
    query = {"since": "earliest", "until": "latest", "envelope": "value"}
    for accept in ("application/x-ndjson", "application/json"):
        answer = get(gateway.url, log.topic, accept=accept, **query)

        assert accept == answer.headers["content-type"]
        assert [{"a": 1}, "text", "/w=="] == [json.loads(line) for line in answer.text.splitlines()]


def test_signs_of_life(broker, log):
    """Does a stream that has nothing to say say so, with the position it has reached over what was left out?"""
    with GatewayThread(broker.bootstrap, {"stream.heartbeat.ms": "100", "stream.retry.ms": "7"}) as gateway:
        with raw(gateway.url, log.topic, key="mine") as answer:
            said = iter(answer.iter_lines())
            begin = [":ok", "", "retry: 7", f"id: {log.topic}:0=0,1=0", "", ": keep-alive"]
            assert begin == list(itertools.islice(said, 6))
            log.send(*range(5), key="other", partition=0)
            assert f"id: {log.topic}:0=5,1=0" in said
        with raw(gateway.url, log.topic, accept="application/json", filter="false", since="earliest") as answer:
            assert "" == next(answer.iter_lines())


def test_joining_the_tail(gateway, broker, log):
    """Is none of thousands of records lost or repeated between the log and its end, while they are written?"""
    count, readers = 6000, 4
    log.send(*range(1000))
    started = threading.Event()

    def write():
        with KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=1) as producer:
            for n in range(1000, count):
                producer.send(log.topic, str(n).encode(), partition=n % 2)
                if n % 100 == 0:
                    producer.flush()
                    started.set()

    seen = [[] for _ in range(readers)]

    def read(mine):
        with events(gateway.url, log.topic, since="earliest", max=count) as source:
            mine += [event.data["value"] for event in source if event.name == "message"]

    threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=[mine]) for mine in seen)]
    threads[0].start()
    assert started.wait(20)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(60)

    for mine in seen:
        assert list(range(count)) == sorted(mine)


@pytest.mark.parametrize(
    ("path", "query", "headers", "status", "code", "words"),
    [
        ("{t}", {"filter": "value.x >"}, {}, 400, 400, "at column 10: expected"),
        ("{t}", {"filter": "x" * 5000}, {}, 400, 400, "4000 characters"),
        ("{t}", {"since": "yesterday"}, {}, 400, 400, "earliest or latest"),
        ("{t}", {"since": "2999-01-01"}, {}, 400, 400, "future"),
        ("{t}", {"until": "earliest"}, {}, 400, 400, "latest"),
        ("{t}", {"partition": "x"}, {}, 400, 400, "separated by commas"),
        ("{t}", {"partition": "7"}, {}, 404, 40402, "no partition 7"),
        ("{t}", {"envelope": "letter"}, {}, 400, 400, "envelope"),
        ("{t}", {"max": "0"}, {}, 400, 400, "max"),
        ("{t}", {"max": "many"}, {}, 400, 400, "max"),
        ("{t}", {"group": ""}, {}, 400, 400, "1 to 249"),
        ("{t}", {"sinse": "1"}, {}, 400, 400, "sinse"),
        ("{t}", {"last_event_id": "nonsense:"}, {}, 400, 400, "Last-Event-ID"),
        ("{t}", {}, {"last-event-id": "[{]"}, 400, 400, "Last-Event-ID"),
        ("{t}", {}, {"last-event-id": "other:0=1"}, 400, 400, "'other'"),
        ("{t}", {}, {"accept": "text/html"}, 406, 406, "text/event-stream"),
        ("no-such-topic", {}, {}, 404, 40401, "not there; there are: "),
        ("{t},no-such-topic", {}, {}, 404, 40401, "no-such-topic"),
        ("a b", {}, {}, 400, 40002, "no name"),
        ("{t},", {}, {}, 400, 40002, "no name"),
        (",".join(f"t{n}" for n in range(51)), {}, {}, 400, 400, "stream.topics.max"),
    ],
)
def test_bad_requests(gateway, log, path, query, headers, status, code, words):
    """Is whatever makes no sense refused before the stream begins, with a number and a sentence?"""
    answer = get(gateway.url, path.format(t=log.topic), headers=headers, **query)

    assert (status, code) == (answer.status_code, answer.json()["error_code"])
    assert words.format(t=log.topic) in answer.json()["message"]


def test_too_many(broker, log):
    """Is one stream too many answered with 429, and is there room again when another has ended?"""
    limits = {"streams.max": "3", "streams.max.per.address": "2"}
    with GatewayThread(broker.bootstrap, limits) as gateway:
        with events(gateway.url, log.topic), events(gateway.url, log.topic), events(gateway.url, log.topic) as third:
            assert 429 == third.response.status_code
            assert "streams.max.per.address" in third.response.json()["message"]
            assert "retry-after" in third.response.headers
        deadline = time.monotonic() + 20
        while True:
            with events(gateway.url, log.topic) as source:
                if source.response.status_code == 200:
                    break
            assert time.monotonic() < deadline

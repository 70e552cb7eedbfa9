"""Producing over REST v2: what is stored, where, and in which order."""

import json

import httpx
from tests.gateway.rest_v2 import BINARY, JSON, TEXT, end_of, new_topic, produce, refusal

from headrace.client.admin import KafkaAdmin
from headrace.client.consumer import KafkaConsumer
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread

STORED = {"error_code": None, "error": None}


def stored_in(broker, topic, number):
    """The first records of a topic, read by another client."""
    with KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        return [next(consumer) for _ in range(number)]


def test_formats(http, broker):
    """Is JSON stored as it was written, base64 as bytes, and text as text?"""
    topic = new_topic(broker)
    written = '{"records": [{"key": "k", "value": {"b": 1.10,  "a": 12345678901234567890}}]}'
    assert http.post(f"/topics/{topic}", headers={"content-type": JSON}, content=written).status_code == 200
    produce(http, f"/topics/{topic}", {"key": "AAE=", "value": "/w=="}, media=BINARY)
    produce(http, f"/topics/{topic}", {"key": "ä", "value": "grüße"}, media=TEXT)
    produce(http, f"/topics/{topic}", {"value": [1, None]}, media="application/json")

    assert [(record.key, record.value) for record in stored_in(broker, topic, 4)] == [
        (b'"k"', b'{"b":1.10,"a":12345678901234567890}'),
        (b"\0\1", b"\xff"),
        ("ä".encode(), "grüße".encode()),
        (None, b"[1,null]"),
    ]


def test_timestamp_headers_and_tombstones(http, broker):
    """Do timestamps, headers and null values arrive as they were sent?"""
    topic = new_topic(broker)
    headers = [{"key": "trace", "value": "AQI="}, {"key": "trace", "value": None}]
    produce(http, f"/topics/{topic}", {"key": "k", "value": None, "timestamp": 1_700_000_000_000, "headers": headers})
    (record,) = stored_in(broker, topic, 1)

    assert (record.value, record.timestamp) == (None, 1_700_000_000_000)
    assert record.headers == [("trace", b"\1\2"), ("trace", None)]


def test_offsets_are_in_the_order_of_the_records(http, broker):
    """Says line n where record n went, over several partitions?"""
    topic = new_topic(broker, partitions=3)
    places = [2, 0, 2, 1, 0, 2]
    lines = produce(http, f"/topics/{topic}", *({"value": n, "partition": place} for n, place in enumerate(places)))

    assert lines == [
        {"partition": place, "offset": places[:n].count(place), **STORED} for n, place in enumerate(places)
    ]


def test_one_partition_of_the_path(http, broker):
    """Goes everything to the partition in the path, in its order?"""
    topic = new_topic(broker, partitions=2)
    lines = produce(http, f"/topics/{topic}/partitions/1", *({"value": n} for n in range(5)))

    assert lines == [{"partition": 1, "offset": n, **STORED} for n in range(5)]


def test_a_refused_record_takes_no_other_with_it(http, broker):
    """Is a record that the broker refuses told beside the ones that are stored, and are those all there?"""
    topic = new_topic(broker, message_timestamp_before_max_ms=3_600_000)
    old = {"value": 2, "timestamp": 1_000_000_000_000}
    lines = produce(http, f"/topics/{topic}", {"value": 1}, old, {"value": 3})

    assert [line["offset"] for line in lines] == [0, None, 1]
    assert (lines[1]["error_code"], lines[1]["partition"]) == (40002, None)
    assert end_of(http, topic) == 2


def test_many_records_for_a_topic_of_small_batches(http, broker):
    """Are records that fit one by one all stored, though together they are more than the topic takes at once?"""
    topic = new_topic(broker, max_message_bytes=1000)
    lines = produce(http, f"/topics/{topic}", *({"value": "x" * 300} for _ in range(50)))

    assert [line["offset"] for line in lines] == list(range(50))


def test_nothing_stored_is_a_failure(http, broker):
    """Is the whole request refused when nothing of it could be stored?"""
    topic = new_topic(broker, message_timestamp_before_max_ms=3_600_000)
    old = {"value": 1, "timestamp": 1_000_000_000_000}
    answer = http.post(f"/topics/{topic}", headers={"content-type": JSON}, json={"records": [old]})

    assert refusal(answer) == (400, 40002)


def test_async_answers_at_once(http, broker):
    """Is 204 the answer with async=true, and does the record arrive?"""
    topic = new_topic(broker)
    answer = http.post(
        f"/topics/{topic}?async=true", headers={"content-type": JSON}, json={"records": [{"value": "later"}]}
    )

    assert (answer.status_code, answer.content) == (204, b"")
    assert json.loads(stored_in(broker, topic, 1)[0].value) == "later"


def test_a_topic_made_on_the_way():
    """Does a cluster that makes topics by itself make one for the first record, and another one refuse it?"""
    body = {"headers": {"content-type": JSON}, "json": {"records": [{"value": 1}]}}
    for makes, expected in (("true", 200), ("false", 404)):
        with (
            Cluster({"auto.create.topics.enable": makes}) as cluster,
            GatewayThread(cluster.bootstrap) as gateway,
            httpx.Client(base_url=gateway.url, timeout=30) as client,
        ):
            assert client.post("/topics/new", **body).status_code == expected
            assert client.get("/topics").json() == (["new"] if makes == "true" else [])


def test_new_partitions_are_found(http, broker):
    """Can a partition be written to that was added after the last request?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", {"value": 1})
    body = {"headers": {"content-type": JSON}, "json": {"records": [{"value": 2}]}}
    assert refusal(http.post(f"/topics/{topic}/partitions/1", **body)) == (404, 40402)
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_partitions({topic: 2})
    answer = http.post(f"/topics/{topic}/partitions/1", **body)

    assert answer.json()["offsets"] == [{"partition": 1, "offset": 0, **STORED}]

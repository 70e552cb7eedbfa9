"""Reading a partition without an instance."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.gateway.rest_v2 import BINARY, DEADLINE_S, TEXT, new_topic, produce, refusal

from headrace.client.admin import KafkaAdmin
from headrace.client.producer import KafkaProducer
from headrace.testing.gateway_thread import GatewayThread


def read_at(http, topic, /, accept="application/json", **query):
    answer = http.get(f"/topics/{topic}/partitions/0/records", params=query, headers={"accept": accept})
    assert answer.status_code == 200, answer.text
    return answer


@pytest.fixture
def five(http, broker):
    """A topic with the values 0 to 4, whose timestamps are 1000 ms apart."""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", *({"value": n, "timestamp": 1_700_000_000_000 + 1000 * n} for n in range(5)))
    return topic


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"offset": "earliest"}, [0, 1, 2, 3, 4]),
        ({"offset": 3}, [3, 4]),
        ({"offset": -2}, [3, 4]),
        ({"offset": -99}, [0, 1, 2, 3, 4]),
        ({"offset": "latest", "timeout": 0}, []),
        ({"offset": 5, "timeout": 0}, []),
        ({"timestamp": 1_700_000_001_500}, [2, 3, 4]),
        ({"timestamp": 1_800_000_000_000, "timeout": 0}, []),
        ({"offset": 1, "max_bytes": 2}, [1, 2]),
        ({"offset": 1, "max_bytes": 1}, [1]),
    ],
)
def test_where_to_begin(http, five, query, expected):
    """Is the right part of the partition read, and does next_offset lead on?"""
    answer = read_at(http, five, **query).json()

    assert [record["value"] for record in answer["records"]] == expected
    assert answer["next_offset"] == (expected[-1] + 1 if expected else 5)


def test_shape_and_formats(http, broker):
    """Get clients of Redpanda's proxy a list of records in their format, with timestamp and headers?"""
    topic = new_topic(broker)
    headers = [{"key": "h", "value": "AQ=="}]
    record = {"key": "k", "value": "true", "timestamp": 1_700_000_000_000, "headers": headers}
    produce(http, f"/topics/{topic}", record, media=TEXT)
    rest = {"topic": topic, "partition": 0, "offset": 0, "timestamp": 1_700_000_000_000, "headers": headers}

    for media, key, value in ((TEXT, "k", "true"), (BINARY, "aw==", "dHJ1ZQ==")):
        answer = read_at(http, topic, media, offset=0, timeout=1000, max_bytes=100_000)
        assert answer.headers["content-type"] == media
        assert answer.headers["next-offset"] == "1"
        assert answer.json() == [{**rest, "key": key, "value": value}]
    assert read_at(http, topic, format="binary").json()["records"][0]["value"] == "dHJ1ZQ=="


def test_a_record_of_another_format(http, broker):
    """Are the records before it given, and it refused by its offset?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", {"value": "1"}, {"value": "no json {"}, {"value": "3"}, media=TEXT)
    first = read_at(http, topic).json()
    assert ([record["value"] for record in first["records"]], first["next_offset"]) == ([1], 1)
    answer = http.get(f"/topics/{topic}/partitions/0/records?offset=1")

    assert refusal(answer) == (406, 40601)
    assert "offset 1" in answer.json()["message"]
    assert read_at(http, topic, offset=2).json()["records"][0]["value"] == 3


def test_offsets_that_are_not_there(http, broker, five):
    """Is an offset beyond the end, or before the beginning, refused with what there is?"""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({(five, 0): 2})

    for offset in (1, 6):
        answer = http.get(f"/topics/{five}/partitions/0/records", params={"offset": offset})
        assert refusal(answer) == (400, 40003)
        assert "begins with offset 2, and the next record will have offset 5" in answer.json()["message"]


def test_waiting_for_a_record(http, broker):
    """Is a record that comes while a read waits given at once, and does the wait hold nobody else up?"""
    topic = new_topic(broker)
    with ThreadPoolExecutor(1) as reader:
        answer = reader.submit(read_at, http, topic, offset="latest", timeout=25_000)
        until = time.monotonic() + DEADLINE_S
        sent = 0
        while not answer.done() and time.monotonic() < until:
            # Until the read has found where the end is, records lie before it.
            produce(http, f"/topics/{topic}", {"value": sent})
            sent += 1
        found = answer.result(DEADLINE_S).json()

    assert len(found["records"]) >= 1
    assert found["records"][0]["value"] < sent


def test_transactions(http, broker):
    """Are aborted records not shown, and stepped over?"""
    topic = new_topic(broker)
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"t-{topic}") as producer:
        producer.begin_transaction()
        producer.send(topic, b'"aborted"').get(10)
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b'"committed"')
    answer = read_at(http, topic).json()

    assert [record["value"] for record in answer["records"]] == ["committed"]
    assert read_at(http, topic, offset=answer["next_offset"], timeout=0).json()["records"] == []


def test_so_many_wait_and_no_more(broker):
    """Is a read refused that would have to wait while as many wait as may, and let in when one of them hangs up?"""
    topic = new_topic(broker)
    path = f"/topics/{topic}/partitions/0/records"
    with (
        GatewayThread(broker.bootstrap, {"reads.waiting.max": "1"}) as gateway,
        httpx.Client(base_url=gateway.url, timeout=DEADLINE_S) as http,
    ):
        host, port = gateway.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as waiting:
            waiting.sendall(f"GET {path}?timeout=25000 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            until = time.monotonic() + DEADLINE_S
            while not gateway.gateway.services.waiting_reads._busy and time.monotonic() < until:
                pass
            refused = http.get(path, params={"timeout": 1})
            assert refusal(refused) == (429, 429)
            assert refused.headers["retry-after"] == "1"
            assert http.get(path, params={"timeout": 0}).status_code == 200

        until = time.monotonic() + DEADLINE_S / 2
        while http.get(path, params={"timeout": 1}).status_code == 429 and time.monotonic() < until:
            pass
        assert http.get(path, params={"timeout": 1}).json()["records"] == []

"""Producing through REST v3: one record, several, and a stream of them."""

import json
import time

import httpx
import pytest

from gateway.chunked import TIMEOUT_S, Chunked
from headrace.client.records import TopicPartition
from headrace.testing.gateway_thread import GatewayThread

JSON = {"content-type": "application/json"}


def stored(gateway, topic, partition):
    """What a partition holds."""
    place = TopicPartition(topic, partition)
    found = gateway.call(gateway.gateway.services.fetcher.fetch({place: 0}, max_wait_ms=0))
    return found[place].records


def value(text):
    """A record with a text."""
    return json.dumps({"partition_id": 0, "value": {"type": "STRING", "data": text}})


def test_one_record(http, here, topic, gateway):
    """Is a record stored with its key, headers and time, and told where?"""
    record = {
        "partition_id": 1,
        "key": {"type": "BINARY", "data": "AP8="},
        "value": {"type": "JSON", "data": {"speed": 62.50, "name": "é"}},
        "headers": [{"name": "h", "value": "aGk="}, {"name": "none"}],
        "timestamp": "2026-01-31T12:00:00.5Z",
    }
    answer = http.post(f"{here}/topics/{topic}/records", json=record)
    (found,) = stored(gateway, topic, 1)

    assert answer.status_code == 200
    assert answer.json() == {
        "error_code": 200,
        "cluster_id": here.rpartition("/")[2],
        "topic_name": topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2026-01-31T12:00:00.500000Z",
        "key": {"type": "BINARY", "size": 2},
        "value": {"type": "JSON", "size": len(found.value)},
    }
    assert (found.key, json.loads(found.value)) == (b"\x00\xff", record["value"]["data"])
    assert found.headers == (("h", b"hi"), ("none", None))
    assert found.timestamp == 1_769_860_800_500


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", JSON, 400, 400),
        (b"", JSON, 400, 400),
        (b"[]", JSON, 422, 422),
        (b'{"value": {"type": "BINARY", "data": "?"}}', JSON, 422, 42203),
        (b'{"value": {"type": "AVRO", "data": 1}}', JSON, 422, 422),
        (b'{"partition_id": 7}', JSON, 404, 40402),
        (b'{"partition_id": -1}', JSON, 422, 422),
        pytest.param(b'{"value":' * 100_000, JSON, 400, 400, id="deep"),
        pytest.param(
            b'{"value": {"type": "JSON", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
            JSON,
            400,
            400,
            id="deeper",
        ),
        (b"{} nonsense {", {"content-type": "text/plain"}, 415, 415),
        (b"{}", {}, 415, 415),
        pytest.param(
            b'{"value": {"type": "STRING", "data": "' + b"x" * 2_000_000 + b'"}}', JSON, 413, 41301, id="large"
        ),
    ],
)
def test_bad_record(http, here, topic, gateway, body, headers, status, code):
    """Is a record that cannot be refused with the right status and a sentence, and nothing stored?"""
    answer = http.post(f"{here}/topics/{topic}/records", content=body, headers=headers)

    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert answer.json()["message"].endswith(".")
    assert (stored(gateway, topic, 0), stored(gateway, topic, 1)) == ([], [])


@pytest.mark.parametrize("tail", ["records", "records:batch"])
def test_unknown_topic(http, here, tail):
    """Is a topic that is not there refused and not made?"""
    body = {"entries": [{"id": "1"}]} if "batch" in tail else {}
    answer = http.post(f"{here}/topics/never-made/{tail}", json=body)

    assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)
    assert "never-made" not in http.get("/topics").json()


# --- several


def test_batch(http, here, topic, gateway):
    """Does each record of a batch get a result of its own, found by its id?"""
    entries = [
        {"id": "a", "partition_id": 0, "value": {"type": "STRING", "data": "one"}},
        {"id": "b", "partition_id": 9},
        {"id": "c", "value": {"type": "BINARY", "data": "?"}},
        {"id": "d", "partition_id": 0, "value": {"type": "STRING", "data": "two"}},
    ]
    answer = http.post(f"{here}/topics/{topic}/records:batch", json={"entries": entries})
    result = answer.json()

    assert answer.status_code == 207
    assert [(one["id"], one["offset"]) for one in result["successes"]] == [("a", 0), ("d", 1)]
    assert [(one["id"], one["error_code"]) for one in result["failures"]] == [("b", 40402), ("c", 42203)]
    assert [one.value for one in stored(gateway, topic, 0)] == [b"one", b"two"]


@pytest.mark.parametrize(
    "entries", [[], [{"id": "a"}, {"id": "a"}], [{"id": ""}], [{}], [{"id": "a"}, {"id": "b", "value": 1}], "a"]
)
def test_bad_batch(http, here, topic, gateway, entries):
    """Is a batch that is none refused as a whole, with nothing stored?"""
    answer = http.post(f"{here}/topics/{topic}/records:batch", json={"entries": entries})

    assert answer.status_code == 422
    assert stored(gateway, topic, 0) == []


# --- streams


def test_stream_answers_while_it_is_sent(here, topic, gateway):
    """Does each record get its report before the next one is sent?"""
    with Chunked(gateway.url, f"{here}/topics/{topic}/records") as stream:
        assert stream.head() == 200
        reports = stream.reports()
        for number in range(3):
            stream.send(value(f"record {number}"))
            assert next(reports)["offset"] == number
        stream.end()

        assert list(reports) == []


def test_stream_goes_on_after_a_bad_record(here, topic, gateway):
    """Does a record that cannot be stored get a report in its place, and the others theirs?"""
    with Chunked(gateway.url, f"{here}/topics/{topic}/records", content_type="application/x-ndjson") as stream:
        stream.send(value("one") + "\n" + '{"partition_id": 7}\n{"nonsense": 1}\n' + value("two")[:20])
        stream.send(value("two")[20:] + '\n{"value": {"type": "BINARY", "data": "?"}}\n')
        stream.end()
        reports = list(stream.reports())

    assert [one["error_code"] for one in reports] == [200, 40402, 422, 200, 42203]
    assert [one.value for one in stored(gateway, topic, 0)] == [b"one", b"two"]


@pytest.mark.parametrize(
    "end", ["nonsense", pytest.param('{"value":' * 100_000, id="deep"), '{"value": nonsense}', '{"value": ', "[]"]
)
def test_stream_ends_where_it_is_not_json(here, topic, gateway, end):
    """Does what is not JSON end the stream with a report, after those of the records before it?"""
    with Chunked(gateway.url, f"{here}/topics/{topic}/records") as stream:
        stream.send(value("one") + end)
        stream.end()
        first, last = stream.reports()

    assert (first["error_code"], last["error_code"]) == (200, 400)
    assert last["message"].startswith("The stream ends here:")


def test_several_in_one_body(http, here, topic):
    """Is a body with several records a stream, too, even if it says how long it is?"""
    answer = http.post(f"{here}/topics/{topic}/records", content=value("one") + value("two"), headers=JSON)

    assert [json.loads(line)["offset"] for line in answer.text.splitlines()] == [0, 1]


def test_whole_records_of_a_client_that_hangs_up(here, topic, gateway, http):
    """Is a record stored that arrived whole, and not the half one after it?"""
    with Chunked(gateway.url, f"{here}/topics/{topic}/records") as stream:
        stream.send(value("whole") + value("half")[:-5])
        next(stream.reports())
    after = http.post(f"{here}/topics/{topic}/records", content=value("after"), headers=JSON)

    assert after.json()["offset"] == 1
    assert [one.value for one in stored(gateway, topic, 0)] == [b"whole", b"after"]


@pytest.fixture(scope="module")
def strict(broker):
    """A gateway that allows little: small records, short waits."""
    settings = {
        "request.max.bytes": "2000",
        "produce.stream.idle.ms": "500",
        "stream.stall.ms": "500",
        "produce.stream.buffer.bytes": "65536",
    }
    with GatewayThread(broker.bootstrap, settings) as running:
        yield running


def test_limit_is_for_each_record(strict, here, topic):
    """Does the limit bound each record and not the body, and is one that is too large passed over?"""
    texts = [value(f"record {number}") for number in range(500)]
    texts[250] = value("x" * 5000)
    answer = httpx.post(f"{strict.url}{here}/topics/{topic}/records", content="".join(texts), headers=JSON, timeout=30)
    reports = [json.loads(line) for line in answer.text.splitlines()]

    assert [one["error_code"] for one in reports] == [200] * 250 + [413] + [200] * 249
    assert [one["offset"] for one in reports if one["error_code"] == 200] == list(range(499))


def test_nothing_comes(strict, here, topic):
    """Is a stream in which nothing comes ended with a report?"""
    with Chunked(strict.url, f"{here}/topics/{topic}/records") as stream:
        stream.send(value("one"))
        first, last = stream.reports()

    assert (first["error_code"], last["error_code"]) == (200, 408)


def test_too_many_streams(broker, here, topic):
    """Is a stream too many refused before it begins, and let in when there is room?"""
    path = f"{here}/topics/{topic}/records"
    with GatewayThread(broker.bootstrap, {"produce.streams.max": "1"}) as narrow:
        with Chunked(narrow.url, path) as first:
            assert first.head() == 200
            with Chunked(narrow.url, path) as second:
                assert second.head() == 429
            first.end()
            assert list(first.reports()) == []
        with Chunked(narrow.url, path) as third:
            assert third.head() == 200


def send_many(stream, piece, count):
    """Send the same again and again."""
    for _ in range(count):
        stream.send(piece)


@pytest.mark.slow
def test_reports_that_nobody_reads(strict, here, topic):
    """Is a client that reads no reports not read from, and dropped, before much of what it sends is taken?"""
    piece = value("x") * 1000
    most = 200 * 1024 * 1024 // len(piece)
    with (
        Chunked(strict.url, f"{here}/topics/{topic}/records", receive_bytes=4096) as stream,
        pytest.raises((BrokenPipeError, ConnectionResetError)),
    ):
        send_many(stream, piece, most)
    deadline = time.monotonic() + TIMEOUT_S
    while strict.gateway.services.produce_streams and time.monotonic() < deadline:
        httpx.get(f"{strict.url}/healthy")
    assert strict.gateway.services.produce_streams == 0
    taken = httpx.get(f"{strict.url}{here}/topics/{topic}/partitions/0/offset").json()["latest_offset"]

    assert 0 < taken < most * 1000


def test_nobody_behind_the_gateway():
    """Is a gateway without a cluster there, and says 503 with a sentence?"""
    with GatewayThread("127.0.0.1:1", {"request.timeout.ms": "1000"}) as alone:
        answer = httpx.get(f"{alone.url}/v3/clusters", timeout=30)

    assert (answer.status_code, answer.json()["error_code"]) == (503, 50301)

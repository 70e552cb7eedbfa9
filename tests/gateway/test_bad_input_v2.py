"""What makes no sense gets its status, its number and a sentence, and changes nothing."""

import pytest
from tests.gateway.rest_v2 import BINARY, JSON, TEXT, V2, end_of, new_instance, new_topic, refusal

GOOD = '{"value": "Z29vZA=="}'

BAD_BODIES = {
    "no JSON": (JSON, '{"records": [', 400, 400),
    "nothing": (JSON, "", 400, 400),
    "deep nesting": (JSON, '{"records": [{"value": ' + "[" * 100_000, 400, 400),
    "no UTF-8": (JSON, b'{"records": [{"value": "\xff"}]}', 422, 42203),
    "no object": (JSON, "[]", 422, 422),
    "no records": (JSON, "{}", 422, 422),
    "null for records": (JSON, '{"records": null}', 422, 422),
    "empty records": (JSON, '{"records": []}', 422, 422),
    "a null record": (JSON, f'{{"records": [{GOOD}, null]}}', 422, 422),
    "an unknown field": (JSON, f'{{"records": [{GOOD}], "acks": 1}}', 422, 422),
    "an unknown field in a record": (JSON, f'{{"records": [{GOOD}, {{"vaule": 1}}]}}', 422, 422),
    "bad base64": (BINARY, f'{{"records": [{GOOD}, {{"value": "???"}}]}}', 422, 42203),
    "a number for bytes": (BINARY, f'{{"records": [{GOOD}, {{"value": 5}}]}}', 422, 42203),
    "a bad key": (BINARY, f'{{"records": [{GOOD}, {{"key": "a", "value": null}}]}}', 422, 42203),
    "an object for text": (TEXT, f'{{"records": [{GOOD}, {{"value": {{}}}}]}}', 422, 42203),
    "a bad header": (JSON, f'{{"records": [{GOOD}, {{"headers": [{{"key": "a", "value": "?"}}]}}]}}', 422, 42203),
    "a header without key": (JSON, f'{{"records": [{GOOD}, {{"headers": [{{"value": "AA=="}}]}}]}}', 422, 422),
    "a negative partition": (JSON, f'{{"records": [{GOOD}, {{"partition": -1}}]}}', 422, 422),
    "an unknown partition": (JSON, f'{{"records": [{GOOD}, {{"partition": 1}}]}}', 404, 40402),
    "a negative timestamp": (JSON, f'{{"records": [{GOOD}, {{"timestamp": -1}}]}}', 422, 422),
    "a huge number": (JSON, f'{{"records": [{GOOD}, {{"partition": 99999999999999999999}}]}}', 422, 422),
    "too many records": (JSON, f'{{"records": [{GOOD}{f", {GOOD}" * 10_000}]}}', 413, 413),
    "a record too large": (JSON, f'{{"records": [{GOOD}, {{"value": "{"x" * 2000}"}}]}}', 413, 41301),
    "a body too large": (JSON, f'{{"records": [{{"value": "{"x" * 8_400_000}"}}]}}', 413, 413),
    "a form": ("application/x-www-form-urlencoded", "a=b", 415, 415),
    "plain text": ("text/plain", f'{{"records": [{GOOD}]}}', 415, 415),
    "Avro": ("application/vnd.kafka.avro.v2+json", f'{{"records": [{GOOD}]}}', 415, 415),
    "no embedded format": ("application/vnd.kafka.v2+json", f'{{"records": [{GOOD}]}}', 415, 415),
}


@pytest.fixture(scope="module")
def small(broker):
    """A topic that takes records of up to 1000 bytes."""
    return new_topic(broker, max_message_bytes=1000)


@pytest.mark.parametrize("case", BAD_BODIES)
def test_bad_records(http, small, case):
    """Is a request with something wrong in it refused as a whole, though its first record is good?"""
    media, body, status, code = BAD_BODIES[case]
    answer = http.post(f"/topics/{small}", headers={"content-type": media}, content=body)

    assert refusal(answer) == (status, code)
    assert end_of(http, small) == 0


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/topics/{}/partitions/9", 404, 40402),
        ("/topics/{}/partitions/-1", 404, 404),
        ("/topics/{}?acks=1", 400, 400),
        ("/topics/{}?async=perhaps", 400, 400),
        ("/topics/bad%20name", 400, 40002),
    ],
)
def test_bad_places(http, small, path, status, code):
    """Is a place that cannot be refused, and nothing stored elsewhere?"""
    answer = http.post(path.format(small), headers={"content-type": JSON}, json={"records": [{"value": 1}]})

    assert refusal(answer) == (status, code)
    assert end_of(http, small) == 0


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/topics/no_such%20topic", {"records": [{"value": 1}]}, ["'no_such topic'", "letters", "digits"]),
        ("GET", "/topics/no_such%20topic", None, ["'no_such topic'", "letters", "digits"]),
        ("GET", "/topics/{}/partitions/0/records?offset=abc", None, ["offset must be earliest, latest, an offset or"]),
        ("GET", "/stream/{}?envelope=foo", None, ["envelope must be record or value."]),
        ("GET", "/stream/{}?max=many", None, ["max must be a whole number from 1 to"]),
        ("POST", "/consumers/g", {"format": "jsn"}, ["format must be binary, json or text."]),
        ("POST", "/consumers/g", {"name": "x y"}, ["name must be 1 to 200 letters"]),
        ("POST", "{here}/topics", {"topic_name": "x y"}, ["topic_name must be 1 to 249 letters", "'.', '_' and '-'."]),
    ],
)
def test_what_may_be_written_instead(http, here, small, method, path, body, expected):
    """Does a refusal say in words what may stand there, without an expression or the name of a code?"""
    kind = V2 if path.startswith("/consumers") else {"content-type": "application/json"}
    answer = http.request(method, path.format(small, here=here), headers=kind if body else {}, json=body)
    message = answer.json()["message"]

    assert answer.status_code in {400, 422}
    assert [] == [words for words in expected if words not in message], message
    assert [] == [words for words in ("regex", "enum", "EXCEPTION", "$.") if words in message], message


def test_partition_twice(http, small):
    """Is a record refused that names a partition when the path does?"""
    answer = http.post(
        f"/topics/{small}/partitions/0",
        headers={"content-type": JSON},
        json={"records": [{"value": 1, "partition": 0}]},
    )

    assert refusal(answer) == (422, 422)


def test_a_bad_request_makes_no_topic(http):
    """Is no topic made for a request that is refused?"""
    answer = http.post("/topics/never-made", headers={"content-type": BINARY}, json={"records": [{"value": "?"}]})

    assert refusal(answer) == (422, 42203)
    assert "never-made" not in http.get("/topics").json()


@pytest.mark.parametrize(
    "body",
    [
        {"nmae": "x"},
        {"name": "../../x"},
        {"name": ""},
        {"format": "avro"},
        {"auto.offset.reset": "middle"},
        {"auto.commit.enable": "perhaps"},
        {"auto.commit.enable": True, "enable.auto.commit": True},
        {"fetch.min.bytes": -2},
        {"consumer.request.timeout.ms": "soon"},
        {"isolation.level": "serializable"},
        [],
    ],
)
def test_bad_instances(http, body):
    """Is an instance with an option that is not there, or cannot be, refused?"""
    assert refusal(http.post("/consumers/bad", headers=V2, json=body)) == (422, 422)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("subscription", {}, 422, 422),
        ("subscription", {"topics": []}, 422, 422),
        ("subscription", {"topics": ["a"], "topic_pattern": "a"}, 422, 422),
        ("subscription", {"topics": "a"}, 422, 422),
        ("subscription", {"topic_pattern": "(("}, 422, 422),
        ("assignments", {"partitions": [{"topic": "missing", "partition": 0}]}, 404, 40401),
        ("assignments", {"partitions": [{"topic": "missing"}]}, 422, 422),
        ("positions", {"offsets": [{"topic": "missing", "partition": 0, "offset": -1}]}, 422, 422),
        ("positions", {"offsets": [{"topic": "missing", "partition": 0, "offset": 0}]}, 409, 40903),
        ("positions/end", {"partitions": [{"topic": "missing", "partition": 0}]}, 409, 40903),
        ("offsets", {"offsets": [{"topic": "missing", "partition": 0, "offset": 1}]}, 404, 40401),
        ("offsets", {"offset": []}, 422, 422),
    ],
)
def test_bad_words_to_an_instance(http, path, body, status, code):
    """Is what an instance cannot do refused with the number for it?"""
    instance = new_instance(http)
    answer = http.post(f"{instance}/{path}", headers=V2, json=body)

    assert refusal(answer) == (status, code)
    assert http.delete(instance).status_code == 204


@pytest.mark.parametrize(
    "query",
    ["timeout=soon", "timeout=-1", "max_bytes=0", "max_bytes=1&max_bytes=2", "limit=5", "timeout=99999999999"],
)
def test_bad_queries(http, small, query):
    """Is a query that cannot be refused, by instances and by stateless reads alike?"""
    instance = new_instance(http)

    assert refusal(http.get(f"{instance}/records?{query}")) == (400, 400)
    assert refusal(http.get(f"/topics/{small}/partitions/0/records?{query}")) == (400, 400)
    assert http.delete(instance).status_code == 204


@pytest.mark.parametrize("query", ["offset=first", "offset=1.5", "timestamp=-1", "format=avro", "offset="])
def test_bad_places_to_begin(http, small, query):
    """Is a place to begin that cannot be refused?"""
    assert refusal(http.get(f"/topics/{small}/partitions/0/records?{query}")) == (400, 400)

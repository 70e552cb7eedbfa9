"""Topics, partitions and brokers over REST v2."""

from tests.gateway.rest_v2 import new_topic, produce, refusal


def test_topic_and_its_partitions(http, broker):
    """Is a topic shown with its settings, and each partition with its replicas?"""
    topic = new_topic(broker, partitions=2, retention_ms=1234567)
    detail = http.get(f"/topics/{topic}").json()
    replicas = [{"broker": 1, "leader": True, "in_sync": True}]
    partitions = [{"partition": number, "leader": 1, "replicas": replicas} for number in (0, 1)]

    assert topic in http.get("/topics").json()
    assert (detail["name"], detail["configs"]["retention.ms"], detail["partitions"]) == (topic, "1234567", partitions)
    assert http.get(f"/topics/{topic}/partitions").json() == partitions
    assert http.get(f"/topics/{topic}/partitions/1").json() == partitions[1]


def test_where_a_partition_begins_and_ends(http, broker):
    """Do the offsets of a partition grow with what is stored?"""
    topic = new_topic(broker)
    path = f"/topics/{topic}/partitions/0/offsets"

    assert http.get(path).json() == {"beginning_offset": 0, "end_offset": 0}
    produce(http, f"/topics/{topic}", {"value": 1}, {"value": 2})
    assert http.get(path).json() == {"beginning_offset": 0, "end_offset": 2}


def test_brokers(http):
    """Are the brokers listed by their ids?"""
    assert http.get("/brokers").json() == {"brokers": [1]}


def test_media_types(http):
    """Is v2's own media type given, and plain JSON to who asks for it?"""
    assert http.get("/brokers").headers["content-type"] == "application/vnd.kafka.v2+json"
    plain = http.get("/brokers", headers={"accept": "application/json"})
    assert plain.headers["content-type"] == "application/json"
    assert refusal(http.get("/brokers", headers={"accept": "text/csv"})) == (406, 406)


def test_what_is_not_there(http, broker):
    """Has each thing that is missing its own number?"""
    topic = new_topic(broker)

    for path in ("/topics/missing", "/topics/missing/partitions", "/topics/missing/partitions/0/offsets"):
        assert refusal(http.get(path)) == (404, 40401), path
    for path in (f"/topics/{topic}/partitions/7", f"/topics/{topic}/partitions/7/offsets"):
        assert refusal(http.get(path)) == (404, 40402), path
    assert refusal(http.get(f"/topics/{topic}/partitions/first")) == (404, 404)

"""Consumer instances over REST v2: their whole life."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.gateway.rest_v2 import (
    BINARY,
    DEADLINE_S,
    JSON,
    TEXT,
    V2,
    new_instance,
    new_topic,
    produce,
    read,
    refusal,
    subscribe,
)

from headrace.client.admin import KafkaAdmin
from headrace.testing.gateway_thread import GatewayThread


def values(records):
    return [record["value"] for record in records]


@pytest.mark.parametrize("explicit", [True, False])
def test_base_uri_is_where_it_was_asked(http, explicit):
    """Is an instance found under the address that its maker used, by its own name or one that was made up?"""
    name = {"name": f"c-{explicit}"} if explicit else {}
    host = http.base_url.netloc.decode().replace("127.0.0.1", "localhost")
    answer = http.post("/consumers/a%20b", headers={**V2, "host": host}, json=name).json()

    assert answer["base_uri"] == f"http://{host}/consumers/a%20b/instances/{answer['instance_id']}"
    assert not explicit or answer["instance_id"] == name["name"]
    assert http.delete(answer["base_uri"].replace("localhost", "127.0.0.1")).status_code == 204


@pytest.mark.parametrize(
    ("form", "media", "key", "value"),
    [("json", JSON, "k", {"a": [1.10]}), ("binary", BINARY, "aw==", "/w=="), ("text", TEXT, "k", "grüße")],
)
def test_records_in_each_format(http, broker, form, media, key, value):
    """Are records given back as they were sent in the same format, with timestamp and headers?"""
    topic = new_topic(broker)
    record = {"key": key, "value": value, "timestamp": 1_700_000_000_000, "headers": [{"key": "h", "value": "AQ=="}]}
    produce(http, f"/topics/{topic}", record, media=media)
    instance = new_instance(http, format=form)
    subscribe(http, instance, topic)

    assert read(http, instance, 1) == [{"topic": topic, "partition": 0, "offset": 0, **record}]
    assert http.get(f"{instance}/records?timeout=0").headers["content-type"] == media
    assert http.delete(instance).status_code == 204


def test_subscriptions(http, broker):
    """Can an instance be subscribed, be subscribed elsewhere, told what it reads, and unsubscribed?"""
    one, two = new_topic(broker), new_topic(broker)
    instance = new_instance(http, format="json")
    where = f"{instance}/subscription"
    assert http.get(where).json() == {"topics": []}
    subscribe(http, instance, one)
    subscribe(http, instance, one, two)
    assert http.get(where).json() == {"topics": sorted([one, two])}
    produce(http, f"/topics/{two}", {"value": 2})
    read(http, instance, 1)

    assert http.delete(where).status_code == 204
    assert http.get(where).json() == {"topics": []}
    assert http.get(f"{instance}/assignments").json() == {"partitions": []}
    http.delete(instance)


def test_topic_pattern(http, broker):
    """Does a pattern find the topics that match it?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", {"value": 1})
    instance = new_instance(http, format="json")
    body = {"topic_pattern": f"^{topic[:-1]}[{topic[-1]}]$"}
    assert http.post(f"{instance}/subscription", headers=V2, json=body).status_code == 204

    assert values(read(http, instance, 1)) == [1]
    assert http.get(f"{instance}/subscription").json() == {"topics": [topic]}
    http.delete(instance)


def test_kinds_of_subscription_exclude_each_other(http, broker):
    """Is an instance that reads topics not given partitions as well, until it is unsubscribed?"""
    topic = new_topic(broker)
    instance = new_instance(http)
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    subscribe(http, instance, topic)

    assert refusal(http.post(f"{instance}/assignments", headers=V2, json=partitions)) == (409, 40901)
    pattern = {"topic_pattern": "^a"}
    assert refusal(http.post(f"{instance}/subscription", headers=V2, json=pattern)) == (409, 40901)
    http.delete(f"{instance}/subscription")
    assert http.post(f"{instance}/assignments", headers=V2, json=partitions).status_code == 204
    assert http.get(f"{instance}/assignments").json() == partitions
    http.delete(instance)


def test_positions(http, broker):
    """Does an instance go where it is sent: to an offset, to the beginning, to the end?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", *({"value": n} for n in range(5)))
    instance = new_instance(http, format="json")
    place = {"topic": topic, "partition": 0}
    assert refusal(http.post(f"{instance}/positions", headers=V2, json={"offsets": [{**place, "offset": 3}]})) == (
        409,
        40903,
    )
    http.post(f"{instance}/assignments", headers=V2, json={"partitions": [place]})

    for path, body, expected in (
        ("positions", {"offsets": [{**place, "offset": 3}]}, [3, 4]),
        ("positions/beginning", {"partitions": [place]}, [0, 1, 2, 3, 4]),
    ):
        assert http.post(f"{instance}/{path}", headers=V2, json=body).status_code == 204
        assert values(read(http, instance, len(expected))) == expected
    assert http.post(f"{instance}/positions/end", headers=V2, json={"partitions": [place]}).status_code == 204
    # Where the end is, is found out while records come: at least none is from before.
    sent, found = 5, []
    until = time.monotonic() + DEADLINE_S
    while not found and time.monotonic() < until:
        produce(http, f"/topics/{topic}", {"value": sent})
        sent += 1
        found = values(http.get(f"{instance}/records?timeout=100").json())
    assert found
    assert found == list(range(found[0], sent))
    assert found[0] >= 5
    http.delete(instance)


def test_commits(http, broker):
    """Is committed what was read, or what is said, and does the next instance of the group begin there?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", *({"value": n} for n in range(4)))
    instance = new_instance(http, format="json", **{"auto.commit.enable": "false"})
    group = instance.split("/")[2]
    subscribe(http, instance, topic)
    read(http, instance, 4)
    place = {"topic": topic, "partition": 0}
    assert http.get(f"{instance}/offsets").json() == {"offsets": []}
    assert http.post(f"{instance}/offsets", headers=V2).status_code == 204
    assert http.get(f"{instance}/offsets").json() == {"offsets": [{**place, "offset": 4, "metadata": ""}]}
    chosen = {**place, "offset": 2, "metadata": "mine"}
    assert http.post(f"{instance}/offsets", headers=V2, json={"offsets": [chosen]}).status_code == 204

    for asked in ({"params": place}, {"json": {"partitions": [place]}}):
        assert http.request("GET", f"{instance}/offsets", **asked).json() == {"offsets": [chosen]}
    http.delete(instance)
    body = {"name": "next", "format": "json", "auto.offset.reset": "earliest"}
    http.post(f"/consumers/{group}", headers=V2, json=body)
    again = f"/consumers/{group}/instances/next"
    subscribe(http, again, topic)
    assert values(read(http, again, 2)) == [2, 3]
    http.delete(again)


def test_auto_commit_counts_only_what_was_given(http, broker):
    """Are records that did not fit into the last answer read by the next instance, when commits are automatic?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", *({"value": n} for n in range(6)))
    instance = new_instance(http, format="json")
    group = instance.split("/")[2]
    subscribe(http, instance, topic)
    assert values(read(http, instance, 1, max_bytes=1)) == [0]
    assert values(read(http, instance, 1, max_bytes=1)) == [1]
    http.delete(instance)
    body = {"name": "next", "format": "json", "auto.offset.reset": "earliest"}
    http.post(f"/consumers/{group}", headers=V2, json=body)
    again = f"/consumers/{group}/instances/next"
    subscribe(http, again, topic)

    assert values(read(http, again, 4)) == [2, 3, 4, 5]
    http.delete(again)


def test_max_bytes(http, broker):
    """Holds an answer no more than asked for, and is nothing lost between two answers?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", *({"value": "x" * 98} for _ in range(10)))
    instance = new_instance(http, format="json")
    subscribe(http, instance, topic)
    first = read(http, instance, 3, max_bytes=350)

    assert [record["offset"] for record in first] == [0, 1, 2]
    assert [record["offset"] for record in read(http, instance, 7)] == list(range(3, 10))
    http.delete(instance)


def test_fetch_min_bytes_gathers(http, broker):
    """Does an instance with fetch.min.bytes wait for more than the first record?"""
    topic = new_topic(broker)
    instance = new_instance(http, format="text", **{"fetch.min.bytes": "20", "consumer.request.timeout.ms": 25_000})
    place = {"topic": topic, "partition": 0}
    http.post(f"{instance}/assignments", headers=V2, json={"partitions": [place]})
    with ThreadPoolExecutor(1) as reader:
        answer = reader.submit(http.get, f"{instance}/records")
        for _ in range(4):
            produce(http, f"/topics/{topic}", {"value": "0123456789"}, media=TEXT)
        found = answer.result(DEADLINE_S).json()

    assert len(found) >= 2
    http.delete(instance)


def test_a_record_of_another_format_is_not_lost(http, broker):
    """Are the records before it given first, is it refused each time, and can one go on behind it?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", {"value": "1"}, {"value": "no json {"}, {"value": "3"}, media=TEXT)
    instance = new_instance(http, format="json")
    place = {"topic": topic, "partition": 0}
    http.post(f"{instance}/assignments", headers=V2, json={"partitions": [place]})

    assert values(read(http, instance, 1)) == [1]
    for _ in range(2):
        answer = http.get(f"{instance}/records")
        assert refusal(answer) == (406, 40601)
        assert "offset 1" in answer.json()["message"]
    http.post(f"{instance}/positions", headers=V2, json={"offsets": [{**place, "offset": 2}]})
    assert values(read(http, instance, 1)) == [3]
    http.delete(instance)


def test_format_and_accept(http):
    """Is a media type refused that is not the instance's format, and are general ones taken?"""
    instance = new_instance(http, format="json")

    assert refusal(http.get(f"{instance}/records?timeout=0", headers={"accept": BINARY})) == (406, 40601)
    for general in ("*/*", "application/json", "application/vnd.kafka.v2+json", JSON):
        assert http.get(f"{instance}/records?timeout=0", headers={"accept": general}).status_code == 200
    http.delete(instance)


def test_names_are_taken_once(http):
    """Is a second instance of a name refused, and the name free again when the first is removed?"""
    body = {"headers": V2, "json": {"name": "one"}}
    assert http.post("/consumers/taken", **body).status_code == 200
    assert refusal(http.post("/consumers/taken", **body)) == (409, 40902)
    assert http.delete("/consumers/taken/instances/one").status_code == 204
    assert http.post("/consumers/taken", **body).status_code == 200
    assert http.delete("/consumers/taken/instances/one").status_code == 204


def test_two_share_a_group(http, broker):
    """Do two instances of a group divide the partitions between them, and is every record given once?"""
    topic = new_topic(broker, partitions=2)
    one = new_instance(http, format="json", name="one")
    group = one.split("/")[2]
    http.post(
        f"/consumers/{group}", headers=V2, json={"name": "two", "format": "json", "auto.offset.reset": "earliest"}
    )
    both = (one, f"/consumers/{group}/instances/two")
    for instance in both:
        subscribe(http, instance, topic)
    until = time.monotonic() + DEADLINE_S
    with ThreadPoolExecutor(2) as readers:
        while time.monotonic() < until:
            list(readers.map(lambda instance: http.get(f"{instance}/records?timeout=300"), both))
            shares = [http.get(f"{instance}/assignments").json()["partitions"] for instance in both]
            if [len(share) for share in shares] == [1, 1]:
                break
    produce(http, f"/topics/{topic}", *({"value": n, "partition": n} for n in (0, 1)))
    found = [read(http, instance, 1) for instance in both]

    assert sorted(values(found[0]) + values(found[1])) == [0, 1]
    for instance in both:
        http.delete(instance)


def test_a_removed_instance_lets_its_reader_go(http, broker):
    """Is a read that waits answered at once when the instance is removed?"""
    instance = new_instance(http, format="json")
    subscribe(http, instance, new_topic(broker))
    begun = threading.Event()

    def wait_for_records():
        with httpx.Client(base_url=http.base_url, timeout=DEADLINE_S) as client:
            client.get(f"{instance}/subscription")
            begun.set()
            return client.get(f"{instance}/records?timeout=25000")

    with ThreadPoolExecutor(1) as reader:
        answer = reader.submit(wait_for_records)
        begun.wait(DEADLINE_S)
        assert http.delete(instance).status_code == 204

        assert refusal(answer.result(DEADLINE_S)) == (404, 40403)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", ""),
        ("GET", "/records"),
        ("GET", "/subscription"),
        ("DELETE", "/subscription"),
        ("GET", "/assignments"),
        ("GET", "/offsets"),
        ("POST", "/offsets"),
    ],
)
def test_an_instance_that_is_not_there(http, method, path):
    """Has every path of an unknown instance the same answer?"""
    answer = http.request(method, f"/consumers/g/instances/missing{path}", headers=V2 if method == "POST" else None)

    assert refusal(answer) == (404, 40403)


def members_of(broker, group):
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        return len(admin.describe_groups([group])[group].members)


def test_so_many_and_no_more(broker):
    """Are only so many instances made, and another one when there is room?"""
    with (
        GatewayThread(broker.bootstrap, {"consumer.instances.max": "1"}) as gateway,
        httpx.Client(base_url=gateway.url, timeout=DEADLINE_S) as http,
    ):
        instance = new_instance(http)
        assert refusal(http.post("/consumers/more", headers=V2, json={})) == (429, 429)
        assert http.delete(instance).status_code == 204
        assert http.post("/consumers/more", headers=V2, json={}).status_code == 200


def test_an_idle_instance_is_removed(broker):
    """Does an instance that nobody asks for leave its group by itself?"""
    topic = new_topic(broker)
    with (
        GatewayThread(broker.bootstrap, {"consumer.instance.idle.ms": "1000"}) as gateway,
        httpx.Client(base_url=gateway.url, timeout=DEADLINE_S) as http,
    ):
        produce(http, f"/topics/{topic}", {"value": 1})
        until = time.monotonic() + DEADLINE_S
        found = []
        while (not found or "error_code" in found) and time.monotonic() < until:
            # On a slow machine it may be idle for too long before it is asked the next thing; then once more.
            instance = new_instance(http, format="json")
            http.post(f"{instance}/subscription", headers=V2, json={"topics": [topic]})
            found = http.get(f"{instance}/records?timeout=10000").json()
        assert values(found) == [1]
        group = instance.split("/")[2]
        while members_of(broker, group) and time.monotonic() < until:
            pass

        assert members_of(broker, group) == 0
        assert refusal(http.delete(instance)) == (404, 40403)


def test_a_stop_leaves_the_groups(broker):
    """Is a group empty when the gateway has stopped, and is what was read committed?"""
    topic = new_topic(broker)
    with (
        GatewayThread(broker.bootstrap) as gateway,
        httpx.Client(base_url=gateway.url, timeout=DEADLINE_S) as http,
    ):
        produce(http, f"/topics/{topic}", {"value": 1})
        instance = new_instance(http, format="json")
        subscribe(http, instance, topic)
        read(http, instance, 1)
        group = instance.split("/")[2]

    assert members_of(broker, group) == 0
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        assert [one.offset for one in admin.list_group_offsets(group).values()] == [1]


def test_only_a_reader_moves_an_instance(http, broker):
    """Do HEAD and pages of other sites leave an instance where it is?"""
    topic = new_topic(broker)
    produce(http, f"/topics/{topic}", {"value": 1})
    instance = new_instance(http, format="json")
    subscribe(http, instance, topic)

    assert http.head(f"{instance}/records?timeout=5000").status_code == 405
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://localhost:3000"},
    ):
        assert refusal(http.get(f"{instance}/records?timeout=5000", headers=headers)) == (403, 403)
    assert values(read(http, instance, 1)) == [1]
    http.delete(instance)


def test_a_reader_that_hangs_up_takes_nothing(http, broker):
    """Does a record that comes after a reader has hung up go to the next one?"""
    topic = new_topic(broker)
    instance = new_instance(http, format="json")
    place = {"topic": topic, "partition": 0}
    http.post(f"{instance}/assignments", headers=V2, json={"partitions": [place]})
    with pytest.raises(httpx.ReadTimeout):
        http.get(f"{instance}/records?timeout=25000", timeout=0.5)
    # The instance serves one request at a time: this one is answered when the other has been given up, before its 25 s.
    assert http.get(f"{instance}/assignments", timeout=15).json() == {"partitions": [place]}
    produce(http, f"/topics/{topic}", {"value": 1})

    assert values(read(http, instance, 1)) == [1]
    http.delete(instance)


def test_no_cluster():
    """Is the cluster's absence told at once, whatever is asked for?"""
    with (
        GatewayThread("127.0.0.1:1") as gateway,
        httpx.Client(base_url=gateway.url, timeout=DEADLINE_S) as http,
    ):
        assert http.get("/healthy").status_code == 200
        for path in ("/ready", "/topics", "/topics/a", "/brokers", "/topics/a/partitions/0/records"):
            assert refusal(http.get(path)) == (503, 50301), path
        body = {"headers": {"content-type": JSON}, "json": {"records": [{"value": 1}]}}
        assert refusal(http.post("/topics/a", **body)) == (503, 50301)
        assert refusal(http.post("/consumers/g", headers=V2, json={})) == (503, 50301)


def test_a_stop_ends_reads_that_wait(broker):
    """Does a gateway stop in its time while somebody waits for records, and leave the group?"""
    topic = new_topic(broker)
    gateway = GatewayThread(broker.bootstrap, {"shutdown.timeout.ms": "1000"})
    gateway.start()
    with httpx.Client(base_url=gateway.url, timeout=DEADLINE_S) as http:
        produce(http, f"/topics/{topic}", {"value": 1})
        instance = new_instance(http, format="json")
        subscribe(http, instance, topic)
        read(http, instance, 1)
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(http.get, f"{instance}/records?timeout=25000")
            while not gateway.call(_is_used(gateway)):
                pass
            gateway.stop()
            waiting.exception(DEADLINE_S)

    assert members_of(broker, instance.split("/")[2]) == 0


async def _is_used(gateway):
    """Whether an instance of the gateway is being read."""
    return any(one.users for one in gateway.gateway.services.instances._found.values())

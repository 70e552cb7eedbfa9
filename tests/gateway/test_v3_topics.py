"""Clusters, brokers, topics, partitions and settings through REST v3."""

import pytest


def test_links_lead_somewhere(http, here, topic):
    """Does every link of an object lead to something that is there, under the address that was used?"""
    seen, left = set(), [str(http.base_url.join("/v3/clusters"))]
    while left:
        url = left.pop()
        if url in seen or url.endswith("/acls"):
            continue
        seen.add(url)
        answer = http.get(url)
        assert answer.status_code in ({200, 404} if url.endswith("/reassignment") else {200}), url
        found = [one for one in answer.json().get("data", []) if one.get("topic_name", topic) == topic]
        ours = [answer.json(), *found[:2], *found[-1:]]
        left += [one["related"] for item in ours for one in item.values() if isinstance(one, dict) and "related" in one]
        left += [item["metadata"]["self"] for item in ours if "metadata" in item]

    assert any(url.endswith(f"/topics/{topic}/partitions/1/replicas/1") for url in seen)
    assert any(url.endswith("/brokers/1/configs") for url in seen)


def test_names_of_objects(http, here, topic):
    """Have objects a kind, and a name that says where they belong?"""
    partition = http.get(f"{here}/topics/{topic}/partitions/0").json()
    cluster_id = here.rpartition("/")[2]

    assert partition["kind"] == "KafkaPartition"
    assert partition["metadata"] == {
        "self": str(http.base_url.join(f"{here}/topics/{topic}/partitions/0")),
        "resource_name": f"crn:///kafka={cluster_id}/topic={topic}/partition=0",
    }


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        ("/topics/absent", 40401),
        ("/topics/absent/configs", 40401),
        ("/topics/absent/partitions", 40401),
        ("/topics/{topic}/partitions/9", 40402),
        ("/topics/{topic}/partitions/9/offset", 40402),
        ("/topics/{topic}/partitions/x", 404),
        ("/topics/{topic}/partitions/0/replicas/9", 404),
        ("/topics/{topic}/partitions/0/reassignment", 404),
        ("/topics/{topic}/configs/absent", 404),
        ("/brokers/9", 40406),
        ("/brokers/9/configs", 40406),
        ("/consumer-groups/absent", 40404),
        ("/consumer-groups/absent/lags", 40404),
        ("/consumer-groups/absent/consumers/one", 40404),
    ],
)
def test_what_is_not_there(http, here, topic, tail, code):
    """Is what is not there answered with its number and a sentence?"""
    answer = http.get(here + tail.format(topic=topic))

    assert (answer.status_code, answer.json()["error_code"]) == (404, code)
    assert answer.json()["message"].endswith(".")


def test_another_cluster(http, topic):
    """Is a cluster that is not behind this gateway not found?"""
    answer = http.get(f"/v3/clusters/another/topics/{topic}")

    assert (answer.status_code, answer.json()["error_code"]) == (404, 40405)


def test_methods_of_a_path(http, here, topic):
    """Is a method that a path does not know answered with those it knows?"""
    answer = http.put(f"{here}/topics/{topic}")

    assert (answer.status_code, answer.json()["error_code"]) == (405, 405)
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "PATCH", "DELETE"}
    assert http.head(f"{here}/topics/{topic}").status_code == 200


def test_no_access_rules(http, here):
    """Does a cluster without access rules say so in a sentence?"""
    answer = http.get(f"{here}/acls")

    assert (answer.status_code, answer.json()["error_code"]) == (501, 50101)
    assert "no access rules" in answer.json()["message"]


# --- topics


def test_life_of_a_topic(http, here):
    """Can a topic be checked, created, grown and deleted?"""
    asked = {"topic_name": "life", "partitions_count": 2, "configs": [{"name": "retention.ms", "value": "5000"}]}
    url = f"{here}/topics/life"
    checked = http.post(f"{here}/topics", json={**asked, "validate_only": True})
    before = http.get(url).status_code
    created = http.post(f"{here}/topics", json=asked)
    again = http.post(f"{here}/topics", json=asked)
    setting = http.get(f"{url}/configs/retention.ms").json()
    grown = http.patch(url, json={"partitions_count": 4})
    shrunk = http.patch(url, json={"partitions_count": 1})
    deleted = http.delete(url)

    assert (checked.status_code, before) == (200, 404)
    assert (created.status_code, created.headers["location"]) == (201, created.json()["metadata"]["self"])
    assert created.json()["partitions_count"] == 2
    assert (again.status_code, again.json()["error_code"]) == (400, 40002)
    assert (setting["value"], setting["is_default"], setting["source"]) == ("5000", False, "DYNAMIC_TOPIC_CONFIG")
    assert (grown.status_code, grown.json()["partitions_count"]) == (200, 4)
    assert shrunk.status_code == 400
    assert (deleted.status_code, http.get(url).status_code, http.delete(url).status_code) == (204, 404, 404)


def test_topic_by_brokers(http, here):
    """Can partitions be put on brokers by hand, and not on brokers that are not there?"""
    where = [{"partition_id": 0, "broker_ids": [1]}, {"partition_id": 1, "broker_ids": [1]}]
    made = http.post(f"{here}/topics", json={"topic_name": "by-hand", "replicas_assignments": where})
    absent = [{"partition_id": 0, "broker_ids": [7]}]
    refused = http.post(f"{here}/topics", json={"topic_name": "by-hand-2", "replicas_assignments": absent})

    assert (made.status_code, made.json()["partitions_count"], made.json()["replication_factor"]) == (201, 2, 1)
    assert (refused.status_code, refused.json()["error_code"]) == (400, 40002)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"topic_name": "no good"}, 422),
        ({"topic_name": ""}, 422),
        ({"topic_name": ".."}, 400),
        ({"topic_name": "x", "partitions_count": 0}, 422),
        ({"topic_name": "x", "partitions_count": 10_001}, 422),
        ({"topic_name": "x", "replication_factor": 5}, 400),
        ({"topic_name": "x", "configs": [{"name": "no.such", "value": "1"}]}, 400),
        ({"topic_name": "x", "configs": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}, 422),
        (
            {"topic_name": "x", "partitions_count": 1}
            | {"replicas_assignments": [{"partition_id": 0, "broker_ids": [1]}]},
            422,
        ),
    ],
)
def test_bad_topic(http, here, body, status):
    """Is a topic that cannot be refused with the right status, and not made?"""
    answer = http.post(f"{here}/topics", json=body)

    assert answer.status_code == status, answer.text
    assert "x" not in http.get("/topics").json()


def test_pages(http, here, topic):
    """Do small pages add up to the whole list?"""
    whole = [one["topic_name"] for one in http.get(f"{here}/topics").json()["data"]]
    url, found = f"{here}/topics?page_size=2", []
    while url is not None:
        page = http.get(url).json()
        found += [one["topic_name"] for one in page["data"]]
        url = page["metadata"]["next"]

    assert found == whole
    assert http.get(f"{here}/topics?page_size=0").status_code == 400
    assert http.get(f"{here}/topics?page_token=x").status_code == 400
    assert http.get(f"{here}/topics?size=1").status_code == 400


# --- partitions


def test_offsets(http, here, topic):
    """Are beginning, end and a point in time found?"""
    for minute in (1, 2, 3):
        record = {"partition_id": 0, "timestamp": f"2026-01-31T12:0{minute}:00Z"}
        assert http.post(f"{here}/topics/{topic}/records", json=record).status_code == 200
    url = f"{here}/topics/{topic}/partitions/0/offset"
    both = http.get(url).json()
    latest = http.get(f"{url}?offset_type=latest").json()
    at_time = http.get(url, params={"timestamp": "2026-01-31T12:01:30Z"}).json()
    too_late = http.get(url, params={"timestamp": "2027-01-31T12:01:30Z"}).json()

    assert (both["earliest_offset"], both["latest_offset"], both["offset"]) == (0, 3, None)
    assert (latest["earliest_offset"], latest["latest_offset"]) == (None, 3)
    assert (at_time["offset"], too_late["offset"]) == (1, None)


# --- settings


def test_settings_of_a_topic(http, here, topic):
    """Can settings be set, changed several at once, and taken back?"""
    url = f"{here}/topics/{topic}/configs"
    put = http.put(f"{url}/retention.ms", json={"value": "1000"})
    changes = [{"name": "retention.ms", "value": "2000"}, {"name": "cleanup.policy", "value": "compact"}]
    checked = http.post(f"{url}:alter", json={"data": changes, "validate_only": True})
    between = http.get(f"{url}/retention.ms").json()["value"]
    altered = http.post(f"{url}:alter", json={"data": changes})
    after = {one["name"]: one["value"] for one in http.get(url).json()["data"]}
    back = http.post(f"{url}:alter", json={"data": [{"name": "cleanup.policy", "operation": "DELETE"}]})
    deleted = http.delete(f"{url}/retention.ms")
    last = {one["name"]: one for one in http.get(url).json()["data"]}

    assert [one.status_code for one in (put, checked, altered, back, deleted)] == [204] * 5
    assert (between, after["retention.ms"], after["cleanup.policy"]) == ("1000", "2000", "compact")
    assert (last["retention.ms"]["is_default"], last["cleanup.policy"]["value"]) == (True, "delete")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ([{"name": "retention.ms", "value": "many"}], 400),
        ([{"name": "no.such.setting", "value": "1"}], 400),
        ([{"name": "retention.ms"}], 422),
        ([{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "operation": "DELETE"}], 422),
        ([{"name": "retention.ms", "value": "1", "operation": "APPEND"}], 422),
        ([], 422),
    ],
)
def test_bad_settings(http, here, topic, data, status):
    """Are settings that cannot be refused, and none of them changed?"""
    answer = http.post(f"{here}/topics/{topic}/configs:alter", json={"data": data})

    assert answer.status_code == status
    assert http.get(f"{here}/topics/{topic}/configs/retention.ms").json()["is_default"]


@pytest.mark.parametrize(("place", "whose"), [("/brokers/1/configs", "BROKER"), ("/broker-configs", "DEFAULT_BROKER")])
def test_settings_of_brokers(http, here, place, whose):
    """Can a setting of one broker, and one of all, be set and taken back?"""
    url = f"{here}{place}/log.cleaner.threads"
    put = http.put(url, json={"value": "2"})
    found = http.get(url).json()
    deleted = http.delete(url)

    assert (put.status_code, deleted.status_code) == (204, 204)
    assert (found["value"], found["source"]) == ("2", f"DYNAMIC_{whose}_CONFIG")

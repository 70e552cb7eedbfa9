"""Groups, members, lag and offsets through REST v3."""

import shlex
import subprocess
import sys
import time
from urllib.parse import quote

import pytest

from headrace import KafkaConsumer

GROUP_S = 30


@pytest.fixture
def filled(http, here, topic):
    """A topic with ten records in partition 0, a minute apart."""
    entries = [
        {
            "id": str(n),
            "partition_id": 0,
            "timestamp": f"2026-01-31T12:{n:02}:00Z",
            "value": {"type": "JSON", "data": n},
        }
        for n in range(10)
    ]
    answer = http.post(f"{here}/topics/{topic}/records:batch", json={"entries": entries})
    assert answer.json()["failures"] == []
    return topic


def reset(http, url, scenario, *, topics=None, execute=False):
    """Ask for a reset."""
    body = {"scenario": scenario, "execute": execute}
    if topics is not None:
        body["topics"] = topics
    return http.post(f"{url}/offsets:reset", json=body)


def plan(answer):
    """The new offsets by partition."""
    assert answer.status_code == 200, answer.text
    return {one["partition_id"]: one["new_offset"] for one in answer.json()["data"]}


@pytest.mark.slow
def test_a_group_at_work(http, here, filled, broker):
    """Are a group's members, what they read and how far they are to be seen?"""
    with KafkaConsumer(
        filled, bootstrap_servers=broker.bootstrap, group_id="at-work", auto_offset_reset="earliest", client_id="me"
    ) as consumer:
        deadline = time.monotonic() + GROUP_S
        seen = 0
        while seen < 10 and time.monotonic() < deadline:
            seen += sum(len(records) for records in consumer.poll(timeout_ms=200).values())
        consumer.commit()
        url = f"{here}/consumer-groups/at-work"
        group = http.get(url).json()
        (member,) = http.get(f"{url}/consumers").json()["data"]
        assignments = http.get(member["assignments"]["related"]).json()["data"]
        lag = http.get(assignments[0]["lag"]["related"]).json()
        summary = http.get(f"{url}/lag-summary").json()
        listed = [one["consumer_group_id"] for one in http.get(f"{here}/consumer-groups").json()["data"]]
        refused = reset(http, url, {"type": "to-earliest"}, execute=True)
        deleted = http.delete(url)

    assert (group["state"], group["type"], group["is_simple"]) == ("STABLE", "CLASSIC", False)
    assert member["client_id"] == "me"
    assert [(one["topic_name"], one["partition_id"]) for one in assignments] == [(filled, 0), (filled, 1)]
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (10, 10, 0)
    assert lag["consumer_id"] == member["consumer_id"]
    assert (summary["max_lag"], summary["total_lag"]) == (0, 0)
    assert "at-work" in listed
    assert (refused.status_code, refused.json()["error_code"]) == (409, 40903)
    assert (deleted.status_code, deleted.json()["error_code"]) == (409, 40903)


def test_reset(http, here, filled):
    """Does a reset show its plan first, and do it only when told?"""
    url = f"{here}/consumer-groups/reset-{filled}"
    all_of_it = [{"topic_name": filled}]
    assert plan(reset(http, url, {"type": "to-latest"}, topics=all_of_it)) == {0: 10, 1: 0}
    assert http.get(url).status_code == 404

    done = reset(http, url, {"type": "to-offset", "offset": 4}, topics=all_of_it, execute=True)
    assert plan(done) == {0: 4, 1: 0}
    assert done.json()["data"][1]["note"] == "Offset 4 lies behind the end of the log."
    lags = http.get(f"{url}/lags").json()["data"]
    assert [(one["partition_id"], one["current_offset"], one["lag"]) for one in lags] == [(0, 4, 6), (1, 0, 0)]
    assert http.get(f"{url}/lag-summary").json()["total_lag"] == 6

    assert plan(reset(http, url, {"type": "to-earliest"})) == {0: 0, 1: 0}
    assert plan(reset(http, url, {"type": "to-current"})) == {0: 4, 1: 0}
    assert plan(reset(http, url, {"type": "shift-by", "records": -1}, topics=[{"topic_name": filled}]))[0] == 3
    at_seven = {"type": "to-datetime", "timestamp": "2026-01-31T12:06:30Z"}
    assert plan(reset(http, url, at_seven, topics=[{"topic_name": filled, "partitions": [0]}])) == {0: 7}
    assert plan(reset(http, url, {"type": "by-duration", "duration": "P36500D"})) == {0: 0, 1: 0}
    assert http.get(f"{url}/lags/{filled}/partitions/0").json()["current_offset"] == 4


@pytest.mark.parametrize(
    ("scenario", "topics", "status"),
    [
        ({"type": "to-moon"}, None, 422),
        ({"type": "to-offset", "offset": -1}, None, 422),
        ({"type": "shift-by", "records": 1}, [{"topic_name": "{topic}"}], 422),
        ({"type": "to-earliest"}, [{"topic_name": "absent"}], 404),
        ({"type": "to-earliest"}, [{"topic_name": "{topic}", "partitions": [9]}], 404),
        ({"type": "to-earliest"}, [{"topic_name": "{topic}"}, {"topic_name": "{topic}"}], 422),
        ({"type": "to-datetime", "timestamp": "yesterday"}, None, 422),
    ],
)
def test_bad_reset(http, here, topic, scenario, topics, status):
    """Is a reset that cannot be refused, and nothing done?"""
    url = f"{here}/consumer-groups/bad-{topic}"
    named = topics and [{**one, "topic_name": one["topic_name"].format(topic=topic)} for one in topics]
    answer = reset(http, url, scenario, topics=named, execute=True)

    assert answer.status_code == status, answer.text
    assert http.get(url).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "scenario"),
    [
        ("--to-earliest", {"type": "to-earliest"}),
        ("--to-latest", {"type": "to-latest"}),
        ("--to-offset 7", {"type": "to-offset", "offset": 7}),
        ("--to-datetime 2026-01-31T12:03:30.000", {"type": "to-datetime", "timestamp": "2026-01-31T12:03:30Z"}),
    ],
)
def test_same_plan_as_the_command_line(http, here, filled, broker, words, scenario):
    """Is the plan the one that kafka-consumer-groups shows?"""
    group = f"plan-{filled}"
    command = f"kafka-consumer-groups --bootstrap-server {broker.bootstrap} --reset-offsets --group {group} "
    done = subprocess.run(
        [sys.executable, "-P", "-m", "headrace.cli", *shlex.split(f"{command} --topic {filled} {words} --dry-run")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    shown = [line.split() for line in done.stdout.splitlines() if line.startswith(group)]
    ours = plan(reset(http, f"{here}/consumer-groups/{group}", scenario, topics=[{"topic_name": filled}]))

    assert {int(row[2]): int(row[3]) for row in shown} == ours, done.stderr


def test_forgetting(http, here, filled):
    """Can committed offsets be forgotten, one by one and with the group, and not twice?"""
    name = f"team/{filled}"
    url = f"{here}/consumer-groups/{quote(name, safe='')}"
    reset(http, url, {"type": "to-latest"}, topics=[{"topic_name": filled}], execute=True).raise_for_status()
    one = http.delete(f"{url}/offsets", params={"topic_name": filled, "partition_id": 0})
    left = [lag["partition_id"] for lag in http.get(f"{url}/lags").json()["data"]]
    again = http.delete(f"{url}/offsets", params={"topic_name": filled, "partition_id": 0})
    nameless = http.delete(f"{url}/offsets")
    group = http.get(url).json()

    assert (one.status_code, left, again.status_code, nameless.status_code) == (204, [1], 404, 400)
    assert group["consumer_group_id"] == name
    assert http.get(group["metadata"]["self"]).status_code == 200
    assert (http.delete(url).status_code, http.get(url).status_code) == (204, 404)


def test_topic_that_is_gone(http, here, filled):
    """Is a group's lag told when a topic it read is no more?"""
    url = f"{here}/consumer-groups/survivor"
    http.post(f"{here}/topics", json={"topic_name": "doomed"}).raise_for_status()
    both = [{"topic_name": filled}, {"topic_name": "doomed"}]
    reset(http, url, {"type": "to-earliest"}, topics=both, execute=True).raise_for_status()
    http.delete(f"{here}/topics/doomed").raise_for_status()

    assert {one["topic_name"] for one in http.get(f"{url}/lags").json()["data"]} == {filled}

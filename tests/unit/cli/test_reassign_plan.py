"""Plans for moving partitions: read, refused, drawn up, and turned into throttles."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.administration import Reassignment
from headrace.cli.json_file import FileRefused
from headrace.cli.reassign_plan import (
    brokers_of,
    check_plan,
    moves,
    plan_json,
    propose,
    read_brokers,
    read_plan,
    read_topics,
    throttled_replicas,
)


def written(tmp_path, document) -> str:
    """A file with the document."""
    path = tmp_path / "plan.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def row(topic="t", partition=0, **more):
    """One partition of a plan."""
    return {"topic": topic, "partition": partition, "replicas": [1, 2]} | more


def test_a_plan_is_read_with_its_directories(tmp_path):
    """Are brokers and directories read, and does `any` mean no directory?"""
    plan = read_plan(written(tmp_path, {"partitions": [row(log_dirs=["any", "/data"])]}))

    assert plan.targets() == {("t", 0): [1, 2]}
    assert plan.log_dirs == {("t", 0, 2): "/data"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("xx", "The input string is not a valid JSON"),
        ("[1]", "Expected JSON object"),
        ({"version": 7}, "Not supported version field value 7"),
        ({"partitions": {}}, "Expected JSON array"),
        ({"partitions": [{"topic": "t"}]}, "No such field exists: `partition`"),
        ({"partitions": [row(replicas="1")]}, "Expected `list` value"),
        ({"partitions": [row(replicas=["1"])]}, "Expected `Integer` value"),
        ({"partitions": [row(log_dirs=["any"])]}, "is different from size of log dirs list"),
    ],
)
def test_files_that_are_no_plan(tmp_path, document, message):
    """Is everything that is no plan refused with a sentence, and never with a traceback?"""
    with pytest.raises(FileRefused, match=message):
        read_plan(written(tmp_path, document))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "Partition reassignment list cannot be empty"),
        ([row(replicas=[])], "Partition replica list cannot be empty"),
        ([row(), row()], "Partition reassignment contains duplicate topic partitions: t-0"),
        ([row(replicas=[1, 1])], "t-0 contains multiple entries for 1"),
    ],
)
def test_plans_that_cannot_be_executed(tmp_path, rows, message):
    """Is a plan that makes no sense refused before anybody is asked?"""
    with pytest.raises(FileRefused, match=message):
        check_plan(read_plan(written(tmp_path, {"partitions": rows})))


def test_topics_and_brokers_must_differ(tmp_path):
    """Are topics and brokers that are named twice refused?"""
    with pytest.raises(FileRefused, match=r"contains duplicate entries: \[a\]"):
        read_topics(written(tmp_path, {"topics": [{"topic": "a"}, {"topic": "a"}]}))
    with pytest.raises(FileRefused, match=r"Broker list contains duplicate entries: \[1\]"):
        read_brokers("1,2,1")
    with pytest.raises(FileRefused, match="For input string"):
        read_brokers("1,x")


def test_a_plan_is_printed_as_kafka_prints_it():
    """Is the JSON compact, sorted, and in Kafka's order of fields?"""
    assert plan_json({("b", 1): [2], ("a", 0): [1, 2]}, {("a", 0, 2): "/d"}) == (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","/d"]},'
        '{"topic":"b","partition":1,"replicas":[2],"log_dirs":["any"]}]}'
    )


@given(
    count=st.integers(1, 40),
    factor=st.integers(1, 4),
    racks=st.dictionaries(st.integers(0, 9), st.sampled_from(["a", "b", "c"]), min_size=4),
    seed=st.integers(),
)
def test_proposals_are_fair(count, factor, racks, seed):
    """Does every partition get distinct brokers, in as many racks as can be, and does every broker lead its share?"""
    current = {("t", index): list(range(factor)) for index in range(count)}

    proposed = propose(current, racks, Random(seed))

    leaders = [replicas[0] for replicas in proposed.values()]
    shares = [leaders.count(broker) for broker in racks]
    assert proposed.keys() == current.keys()
    assert max(shares) - min(shares) <= 1
    for replicas in proposed.values():
        assert len(set(replicas)) == factor
        assert set(replicas) <= racks.keys()
        assert len({racks[broker] for broker in replicas}) == min(factor, len(set(racks.values())))


def test_too_few_brokers():
    """Is it said that there are not enough brokers, or none?"""
    with pytest.raises(FileRefused, match="only 1 broker"):
        propose({("t", 0): [1, 2]}, {1: None}, Random(1))
    with pytest.raises(FileRefused, match="All brokers are currently fenced"):
        propose({("t", 0): [1]}, {}, Random(1))


def test_throttles_name_who_gives_and_who_receives():
    """Are leaders throttled where replicas are now and followers where they come, moves under way included?"""
    under_way = {("t", 1): Reassignment(replicas=(1, 2, 3), adding=(3,), removing=(1,))}

    found = moves(under_way, {("t", 0): [2, 4], ("t", 1): [3]}, {("t", 0): [1, 2], ("t", 1): [1, 2, 3]})

    assert throttled_replicas(found) == {"t": ("0:1,0:2,1:1,1:2", "0:4,1:3")}
    assert brokers_of(found) == [1, 2, 3, 4]

"""The Java client's transactions: all or nothing, one producer per id, and what the admin client sees of them."""

import json

import pytest

from clients.java.live_clients import until

COMMITTED = "isolation.level=read_committed"


@pytest.fixture
def values(java, broker):
    """The values in a topic, as a reader with the given isolation sees them, in order of their places."""

    def read(topic: str, *settings: str) -> list[str]:
        lines = java.check("Read", broker.bootstrap, "beginning", "end", topic, *settings).lines()
        seen = sorted(map(json.loads, lines), key=lambda line: (line["partition"], line["offset"]))
        return [bytes.fromhex(line["value"]).decode() for line in seen]

    return read


@pytest.fixture
def committed(values):
    """As many values as were committed, once readers of committed ones are let through: a little after the commit."""
    return lambda topic, count: until(lambda: values(topic, COMMITTED), lambda seen: len(seen) == count, "all is seen")


@pytest.fixture
def started(transactor):
    """A producer that has announced itself."""

    def start(transactional_id: str, *settings: str):
        producer = transactor(transactional_id, *settings)
        assert producer.init() == "ok"
        return producer

    return start


def test_commit_and_abort(topic, group, started, values, committed):
    """Are committed records seen, over all partitions, and aborted ones only by readers that do not care?"""
    one, two = topic(partitions=2), topic()
    producer = started(group)

    producer.begin()
    producer.send(f"{one}-0", "a")
    producer.send(f"{one}-1", "b")
    producer.send(f"{two}-0", "c")
    assert producer.commit() == "ok"
    producer.begin()
    producer.send(f"{one}-0", "aborted")
    producer.send(f"{two}-0", "aborted too")
    assert producer.abort() == "ok"
    producer.begin()
    producer.send(f"{one}-0", "d")
    assert producer.commit() == "ok"

    assert (committed(one, 3), committed(two, 1)) == (["a", "d", "b"], ["c"])
    assert (values(one), values(two)) == (["a", "aborted", "d", "b"], ["c", "aborted too"])


def test_open_transaction_holds_readers_back(topic, group, started, values, committed):
    """Does a reader of committed records stop before the first open transaction, and go on when it ends?"""
    name = topic()
    slow, quick = started(f"{group}-slow"), started(f"{group}-quick")

    slow.begin()
    slow.send(f"{name}-0", "slow")
    quick.begin()
    quick.send(f"{name}-0", "quick")
    quick.commit()
    before = values(name, COMMITTED)
    everything = values(name)
    slow.commit()

    assert before == []
    assert everything == ["slow", "quick"]
    assert committed(name, 2) == ["slow", "quick"]


def test_second_producer_fences_the_first(topic, group, started, committed):
    """When another producer takes the id over, is what the first had open aborted, and the first refused?"""
    name = topic()
    old = started(group)
    old.begin()
    old.send(f"{name}-0", "of the old one")

    new = started(group)
    new.begin()
    new.send(f"{name}-0", "of the new one")

    assert old.send(f"{name}-0", "late") in {"error ProducerFencedException", "error InvalidProducerEpochException"}
    assert old.commit().startswith("error ")
    assert new.commit() == "ok"
    assert committed(name, 1) == ["of the new one"]


def test_offsets_in_a_transaction(members, topic, group, started, group_admin):
    """Do offsets become a group's with the commit, not with an abort, and not before?"""
    name = topic()
    member = members.start(group, name, "group.protocol=consumer")
    members.until_share([member], [f"{name}-0"])
    producer = started(f"{group}-producer")

    producer.begin()
    assert producer.offsets(f"member:{member}", f"{name}-0@5") == "ok"
    assert producer.abort() == "ok"
    aborted = group_admin("offsets", group)
    producer.begin()
    assert producer.offsets(f"member:{member}", f"{name}-0@6@of a transaction") == "ok"
    assert producer.commit() == "ok"

    assert aborted == {}
    committed = until(lambda: group_admin("offsets", group), lambda seen: seen != {}, "the offsets appear")
    assert committed == {f"{name}-0": [6, "of a transaction"]}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_zombie(members, topic, group, started, group_admin, protocol):
    """Are offsets refused that come from a member that has left the group, and taken from one who names no member?"""
    name = topic()
    gone, there = (members.start(group, name, f"group.protocol={protocol}") for _ in range(2))
    producer = started(f"{group}-producer")
    until(lambda: members.assigned(gone, there), lambda held: sum(map(len, held)) == 1, "somebody has the partition")
    members.close(gone)
    members.until_share([there], [f"{name}-0"])

    producer.begin()
    refused = producer.offsets(f"member:{gone}", f"{name}-0@6")
    assert producer.abort() == "ok"
    producer.begin()
    assert producer.offsets(group, f"{name}-0@7") == "ok"
    assert producer.commit() == "ok"

    assert refused == "error CommitFailedException"
    until(lambda: group_admin("offsets", group), lambda seen: seen == {f"{name}-0": [7, ""]}, "the offset appears")


def test_describe_and_list(topic, group, started, group_admin):
    """Does the admin client see an open transaction, its partitions and its end?"""
    name = topic(partitions=2)
    producer = started(group, "transaction.timeout.ms=54321")
    fresh = group_admin("describe-transaction", group)
    producer.begin()
    producer.send(f"{name}-1", "x")
    ongoing = group_admin("describe-transaction", group)
    listed = group_admin("transactions")
    (on_partition,) = group_admin("producers", f"{name}-1")
    producer.commit()

    assert (fresh["state"], fresh["started"], fresh["partitions"]) == ("Empty", False, [])
    assert ongoing == {
        "coordinator": 1,
        "state": "Ongoing",
        "producer_id": fresh["producer_id"],
        "producer_epoch": fresh["producer_epoch"],
        "timeout_ms": 54321,
        "started": True,
        "partitions": [f"{name}-1"],
    }
    assert listed[group] == "Ongoing"
    assert on_partition == {
        "producer_id": fresh["producer_id"],
        "producer_epoch": fresh["producer_epoch"],
        "coordinator_epoch": -1,
        "start": 0,
    }
    until(lambda: group_admin("transactions")[group], lambda seen: seen == "CompleteCommit", "it is complete")
    assert group_admin("transactions", f"{group[:4]}.*")[group] == "CompleteCommit"
    assert group not in group_admin("transactions", "nothing like it")
    ended = group_admin("describe-transaction", group)
    # Every transaction has an epoch of its own (KIP-890).
    assert ended["producer_epoch"] == fresh["producer_epoch"] + 1
    assert ended["partitions"] == []


def test_unknown_transactional_id(group, group_admin):
    """Is an id that nobody used unknown?"""
    assert group_admin("describe-transaction", group) == "error TransactionalIdNotFoundException"
    assert group not in group_admin("transactions")


def test_fence_producers(topic, group, started, group_admin, values):
    """Does fencing by the admin abort what is open and shut the producer out?"""
    name = topic()
    producer = started(group)
    producer.begin()
    producer.send(f"{name}-0", "lost")

    assert group_admin("fence", group) == "ok"

    assert producer.commit().startswith("error ")
    assert group_admin("transactions")[group] == "Empty"
    assert values(name, COMMITTED) == []
    assert values(name) == ["lost"]


def test_force_terminate(topic, group, started, group_admin, values):
    """Can an open transaction be ended by its id alone (KIP-939)?"""
    name = topic()
    producer = started(group)
    producer.begin()
    producer.send(f"{name}-0", "lost")

    assert group_admin("terminate", group) == "ok"

    assert group_admin("transactions")[group] == "Empty"
    assert values(name, COMMITTED) == []


def test_abort_on_a_partition(topic, group, started, group_admin, values):
    """Can an open transaction be aborted on one partition, as one does with a hanging one?"""
    name = topic()
    producer = started(group)
    producer.begin()
    producer.send(f"{name}-0", "hanging")
    (state,) = group_admin("producers", f"{name}-0")
    words = (f"{name}-0", state["producer_id"], state["producer_epoch"])

    assert group_admin("abort", *words, 0) == "ok"

    (after,) = group_admin("producers", f"{name}-0")
    assert (after["start"], after["coordinator_epoch"]) == (None, 0)
    assert values(name, COMMITTED) == []


def test_timeout_aborts(topic, group, started, group_admin, values):
    """Is a transaction that its producer forgets aborted after its time-out, and the producer told?"""
    name = topic()
    producer = started(group, "transaction.timeout.ms=500")
    producer.begin()
    producer.send(f"{name}-0", "forgotten")

    until(lambda: group_admin("transactions")[group], lambda seen: seen == "CompleteAbort", "it is aborted")

    assert producer.send(f"{name}-0", "late").startswith("error ")
    assert values(name, COMMITTED) == []


def test_timeout_beyond_the_limit(group, transactor):
    """Is a time-out longer than transaction.max.timeout.ms refused?"""
    producer = transactor(group, "transaction.timeout.ms=900001", "max.block.ms=20000")

    assert "transaction timeout is larger than the maximum" in producer.init()


def test_many_transactions(topic, group, started, values):
    """After a hundred transactions, every third aborted, does a reader see exactly the others, in order?"""
    name = topic()
    producer = started(group)
    for number in range(100):
        producer.begin()
        producer.send(f"{name}-0", f"{number}", f"{number}'")
        assert (producer.abort() if number % 3 == 2 else producer.commit()) == "ok"

    expected = [text for number in range(100) if number % 3 != 2 for text in (f"{number}", f"{number}'")]
    assert expected == until(lambda: values(name, COMMITTED), lambda seen: len(seen) == len(expected), "all committed")

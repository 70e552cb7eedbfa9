"""Where replicas go."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_shell import ControllerShell, directories
from headrace.cores.controller.outcome import RECORDS_PER_REQUEST_MAX, check_size
from headrace.cores.controller.partition_records import no_live_replica, partition_records
from headrace.cores.controller.placement import (
    LOST,
    MIGRATING,
    UNASSIGNED,
    UsableBroker,
    brokers_of,
    default_directory,
    is_online,
    place_replicas,
)
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID
from headrace.model.metadata_records import NoOpRecord, RegisterBrokerRecord


def brokers(*racks: str | None, fenced=(), shutting_down=()) -> dict[int, UsableBroker]:
    """Brokers 0, 1, …, in these racks."""
    return {
        number: UsableBroker(
            broker_id=number, rack=rack, is_fenced=number in fenced, is_shutting_down=number in shutting_down
        )
        for number, rack in enumerate(racks)
    }


@given(
    racks=st.integers(2, 4),
    depth=st.integers(1, 4),
    factor=st.integers(1, 6),
    rounds=st.integers(1, 3),
    first=st.integers(0, 1000),
)
def test_equal_racks_are_loaded_equally(racks, depth, factor, rounds, first):
    """Do brokers of equal racks lead and hold alike, and are a partition's replicas spread over racks (R3)?"""
    known = brokers(*(f"r{number % racks}" for number in range(racks * depth)))
    factor = min(factor, len(known))

    placement = place_replicas(known, partitions=rounds * len(known), factor=factor, first=first)

    assert {rounds} == set(Counter(replicas[0] for replicas in placement).values())
    assert {rounds * factor} == set(Counter(replica for replicas in placement for replica in replicas).values())
    for replicas in placement:
        used = Counter(known[replica].rack for replica in replicas)
        assert factor == len(set(replicas))
        assert len(used) == min(factor, racks)
        assert max(used.values()) - min(used.values()) <= 1


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8),
    fenced=st.sets(st.integers(0, 7)),
    factor=st.integers(1, 8),
    first=st.integers(0, 1000),
)
def test_whatever_the_racks_placement_is_valid(racks, fenced, factor, first):
    """Are replicas distinct, leaders even and never fenced, and racks used as far as there are brokers in them?"""
    known = brokers(*racks, fenced=fenced)
    live = [number for number in known if number not in fenced]
    if factor > len(known) or not live:
        with pytest.raises(KafkaError) as refused:
            place_replicas(known, partitions=1, factor=factor, first=first)
        assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
        return

    placement = place_replicas(known, partitions=3 * len(live), factor=factor, first=first)

    assert Counter(dict.fromkeys(live, 3)) == Counter(replicas[0] for replicas in placement)
    for replicas in placement:
        assert factor == len(replicas) == len(set(replicas))
        assert len({known[replica].rack for replica in replicas}) == min(factor, len(set(racks)))


def test_fenced_brokers_are_used_last_and_leaving_ones_never():
    """Does a replica go to a fenced broker only if there is no other, and never to one that stops?"""
    known = brokers(None, None, None, None, fenced={1}, shutting_down={3})

    assert [{0, 2}] * 10 == [set(r) for r in place_replicas(known, partitions=10, factor=2, first=0)]
    assert [{0, 1, 2}] * 10 == [set(r) for r in place_replicas(known, partitions=10, factor=3, first=0)]
    assert {0, 2} == {replicas[0] for replicas in place_replicas(known, partitions=10, factor=3, first=0)}


@pytest.mark.parametrize(
    ("known", "factor", "message"),
    [
        (
            brokers(None, None),
            3,
            (
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
                "because only 2 broker(s) are registered."
            ),
        ),
        (
            brokers(None, fenced={0}),
            1,
            "Unable to replicate the partition 1 time(s): All brokers are currently fenced.",
        ),
    ],
)
def test_too_few_brokers_are_told_in_kafkas_words(known, factor, message):
    """Is a replication factor above the brokers refused with Kafka's sentence?"""
    with pytest.raises(KafkaError) as refused:
        place_replicas(known, partitions=1, factor=factor, first=0)

    assert (ErrorCode.INVALID_REPLICATION_FACTOR, message) == (refused.value.code, refused.value.message)


def test_same_followers_do_not_always_stand_together():
    """Do a broker's partitions have all the others as followers, so that its load spreads when it fails?"""
    placement = place_replicas(range(6), partitions=60, factor=2, first=0)

    assert {1, 2, 3, 4, 5} == {replicas[1] for replicas in placement if replicas[0] == 0}


def test_new_replicas_are_in_their_brokers_only_directory():
    """Is the directory of a replica known where there is just one, and left open where there are more?"""
    assert UNASSIGNED == default_directory(None)
    assert MIGRATING == default_directory(RegisterBrokerRecord())
    assert directories(1)[0] == default_directory(RegisterBrokerRecord(log_dirs=directories(1)))
    assert UNASSIGNED == default_directory(RegisterBrokerRecord(log_dirs=directories(1, 2)))

    cluster = ControllerShell(brokers=1)
    assert directories(1)[0] == brokers_of(cluster.metadata, None)[1].directory


def test_replica_is_online_if_its_directory_is():
    """Is a directory that nobody told taken for online, and a lost one or an unknown one not?"""
    broker = RegisterBrokerRecord(log_dirs=directories(1))

    assert [True, True, True, False, False] == [
        is_online(broker, each) for each in (MIGRATING, UNASSIGNED, directories(1)[0], LOST, directories(2)[0])
    ]
    assert is_online(RegisterBrokerRecord(), directories(2)[0])


def test_partition_on_dead_brokers_only_is_refused():
    """Is a new partition led by its first live replica, and refused where there is none?"""
    known = brokers(None, None, fenced={0})

    (record,) = partition_records(ZERO_ID, [(0, 1)], known, first=4, refuse=no_live_replica)
    assert ((0, 1), (1,), 1, 4) == (record.replicas, record.isr, record.leader, record.partition_id)

    with pytest.raises(KafkaError, match="for partition 4 are fenced or in controlled shutdown"):
        partition_records(ZERO_ID, [(0,)], known, first=4, refuse=no_live_replica)


def test_request_that_becomes_too_many_records_is_refused():
    """Is there an end to what one admin request may write?"""
    check_size([NoOpRecord()] * RECORDS_PER_REQUEST_MAX)

    with pytest.raises(KafkaError) as refused:
        check_size([NoOpRecord()] * (RECORDS_PER_REQUEST_MAX + 1))
    assert ErrorCode.POLICY_VIOLATION == refused.value.code

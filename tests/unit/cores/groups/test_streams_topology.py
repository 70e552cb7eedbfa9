"""What a topology means on a cluster: tasks, internal topics, and what cannot be."""

import pytest

from consumer_shell import ConsumerShell
from headrace.cores.groups.streams_limits import SUBTOPOLOGIES_MAX, TOPICS_MAX, StreamsLimits
from headrace.cores.groups.streams_topology import StatusCode, are_same, check_topology, configure
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.streams_group_records import CopartitionGroup, TopicInfo
from streams_shell import WORD_COUNT, subtopology, topology

LIMITS = StreamsLimits()


def configured(told, **topics):
    """A topology on a cluster with these topics."""
    shell = ConsumerShell(topics=topics)
    check_topology(told)
    return configure(told, shell.metadata, LIMITS)


def internal(result):
    """The partitions that internal topics have or are to have."""
    return {
        topic.name: topic.partitions
        for each in result.subtopologies.values()
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }


def refusal(told, **topics):
    with pytest.raises(KafkaError) as refused:
        configured(told, **topics)
    return refused.value


def joined(*sources, repartition=(), **fields):
    """A subtopology that reads all its topics together."""
    together = CopartitionGroup(
        source_topics=tuple(range(len(sources))), repartition_source_topics=tuple(range(len(repartition)))
    )
    return subtopology("1", *sources, repartition=repartition, copartition_groups=(together,), **fields)


# --- numbers


def test_numbers_follow_the_source():
    """Do repartition topics and changelogs have as many partitions as what is read, all the way down?"""
    chain = topology(
        subtopology("2", repartition=["second"], changelogs=["late"]),
        subtopology("1", repartition=["first"], sinks=["second"], changelogs=["early"]),
        subtopology("0", "a", "b", sinks=["first"]),
    )
    result = configured(chain, a=2, b=5)

    assert {"first": 5, "second": 5, "early": 5, "late": 5} == internal(result)
    assert {"0": 5, "1": 5, "2": 5} == result.task_counts
    assert ["early", "first", "late", "second"] == [topic.name for topic in result.missing]
    assert StatusCode.MISSING_INTERNAL_TOPICS is result.fault.code
    assert "Internal topics are missing: early, first, late and 1 additional topics" == result.fault.detail


def test_asked_number_of_a_repartition_topic_counts():
    """Does a repartition topic get the partitions the application asks for, and its subtopology as many tasks?"""
    told = topology(subtopology("0", "a", sinks=["r"]), subtopology("1", repartition=[("r", 7)], changelogs=["c"]))
    result = configured(told, a=2)

    assert {"r": 7, "c": 7} == internal(result)
    assert {"0": 2, "1": 7} == result.task_counts


def test_ready_when_all_is_there():
    """Is a topology ready when its internal topics are there with their number of partitions?"""
    result = configured(WORD_COUNT, orders=3, words=3, counts=3)

    assert result.is_ready
    assert () == result.missing
    assert {"0": 3, "1": 3} == result.task_counts


@pytest.mark.parametrize("topics", [{"words": 2}, {"counts": 4}])
def test_internal_topic_with_another_number(topics):
    """Is an internal topic that does not fit told, rather than used?"""
    result = configured(WORD_COUNT, orders=3, **topics)
    (name, found) = next(iter(topics.items()))

    assert StatusCode.INCORRECTLY_PARTITIONED_TOPICS is result.fault.code
    assert f"Existing topic {name} has different number of partitions: expected 3, found {found}" == result.fault.detail
    assert () == result.missing
    assert {} == result.task_counts


def test_missing_sources_are_named():
    """Are source topics that are missing named, the first of them at least?"""
    result = configured(topology(subtopology("0", "d", "c", "b", "a", "here")), here=1)

    assert StatusCode.MISSING_SOURCE_TOPICS is result.fault.code
    assert "Source topics a, b, c and 1 additional topics are missing." == result.fault.detail


# --- topics that are read together


def test_repartition_topic_fits_the_source_it_is_joined_with():
    """Does a repartition topic take the number of the user's topic that it is read together with?"""
    told = topology(subtopology("0", "wide", sinks=["r"]), joined("a", repartition=["r"]))

    assert {"r": 3} == internal(configured(told, wide=8, a=3))


def test_repartition_topics_take_the_largest_or_the_asked_number():
    """Do repartition topics among themselves have the largest number, or the one that was asked for?"""
    sources = (subtopology("0", "a", sinks=["r"]), subtopology("2", "b", sinks=["s"]))

    assert {"r": 5, "s": 5} == internal(configured(topology(*sources, joined(repartition=["r", "s"])), a=2, b=5))
    assert {"r": 3, "s": 3} == internal(configured(topology(*sources, joined(repartition=[("r", 3), "s"])), a=2, b=5))


@pytest.mark.parametrize(
    ("together", "detail"),
    [
        (joined("a", "b"), "Following topics do not have the same number of partitions: [{a=2, b=5}]"),
        (
            joined("a", repartition=[("r", 3)]),
            (
                "Number of partitions [3] of repartition topic [r] doesn't match number of partitions [2] "
                "of the source topic."
            ),
        ),
        (
            joined(repartition=[("r", 3), ("s", 4)]),
            "Following topics do not have the same number of partitions: [{r=3, s=4}]",
        ),
    ],
)
def test_topics_that_do_not_fit_together(together, detail):
    """Are topics that are read together but cannot have the same number told as such?"""
    result = configured(topology(subtopology("0", "a", "b", sinks=["r", "s"]), together), a=2, b=5)

    assert (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail) == (result.fault.code, result.fault.detail)


# --- refusals


BAD = {
    "nothing to read": topology(subtopology("0")),
    "twice the same id": topology(subtopology("0", "a"), subtopology("0", "b")),
    "a coordinator's topic": topology(subtopology("0", "__consumer_offsets")),
    "no topic's name": topology(subtopology("0", "a", changelogs=["what ever"])),
    "a number for a changelog": topology(
        subtopology("0", "a"),
        type(subtopology())(
            subtopology_id="1", source_topics=("a",), state_changelog_topics=(TopicInfo(name="c", partitions=3),)
        ),
    ),
    "a negative number": topology(subtopology("0", "a", repartition=[("r", -1)], sinks=["r"])),
    "a source that is no place": topology(
        subtopology("0", "a", copartition_groups=(CopartitionGroup(source_topics=(1,)),))
    ),
    "a place before the first": topology(
        subtopology("0", "a", copartition_groups=(CopartitionGroup(repartition_source_topics=(-1,)),))
    ),
    "a source nobody feeds": topology(subtopology("0", "a"), subtopology("1", repartition=["r"])),
    "a circle": topology(
        subtopology("0", repartition=["r"], sinks=["s"]), subtopology("1", repartition=["s"], sinks=["r"])
    ),
    "too many subtopologies": topology(*(subtopology(str(n), "a") for n in range(SUBTOPOLOGIES_MAX + 1))),
    "too many topics": topology(subtopology("0", *(f"t{n}" for n in range(TOPICS_MAX + 1)))),
    "too many tasks": topology(subtopology("0", "a", sinks=["r"]), subtopology("1", repartition=[("r", 2**31 - 1)])),
}


@pytest.mark.parametrize("told", BAD.values(), ids=BAD)
def test_topology_that_can_never_work(told):
    """Is a topology that makes no sense refused as STREAMS_INVALID_TOPOLOGY?"""
    assert ErrorCode.STREAMS_INVALID_TOPOLOGY == refusal(told, a=2, b=2).code


def test_negative_epoch():
    """Is a topology of a negative epoch refused?"""
    assert ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH == refusal(topology(subtopology("0", "a"), epoch=-1), a=1).code


def test_same_topology():
    """Is a topology the same in another order, and not in another epoch or with other topics?"""
    one, two = subtopology("0", "a"), subtopology("1", "b")

    assert are_same(topology(one, two), topology(two, one))
    assert not are_same(topology(one, two), topology(one, two, epoch=1))
    assert not are_same(topology(one, two), topology(one))

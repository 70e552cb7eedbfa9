"""confluent-kafka in groups, with the classic and the consumer protocol."""

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from clients.confluent_members import PROTOCOLS, Member, until, until_received, until_share
from clients.libraries import DEADLINE_S, Confluent, Sent, create_topic

pytestmark = [pytest.mark.clients, pytest.mark.slow]

by_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
by_either = pytest.mark.parametrize("protocol", ["range", "consumer"])


@pytest.fixture
def start(broker, group):
    """Starts members of the test's group, and closes them in the end."""
    live = []

    def member(protocol: str, *topics: str, **settings) -> Member:
        live.append(Member(broker.bootstrap, group, topics, **PROTOCOLS[protocol] | settings))
        return live[-1]

    yield member
    for one in live:
        one.close()


def fill(bootstrap: str, topic: str, numbers: range, partitions: int = 1) -> list:
    """Send numbers to the partitions in turn; gives what readers must see of them."""
    sent = [Sent(value=b"%d" % number, partition=number % partitions) for number in numbers]
    Confluent.send(bootstrap, topic, sent)
    return sorted(record.at(int(record.value) // partitions) for record in sent)


@by_protocol
def test_members_come_and_go(broker, topic, start, protocol):
    """Do one, two and three members share a topic evenly, and the others take over when one goes (R22)?"""
    create_topic(broker.bootstrap, topic, partitions=6)
    first = start(protocol, topic)
    until_share([first], topic, 6)
    second = start(protocol, topic)
    until_share([first, second], topic, 6)
    third = start(protocol, topic)
    until_share([first, second, third], topic, 6)
    second.close()
    until_share([first, third], topic, 6)
    first.close()
    until_share([third], topic, 6)


@by_protocol
def test_every_record_once(broker, topic, start, protocol):
    """Does a group that commits give every record to one member once, across changes of its members?"""
    create_topic(broker.bootstrap, topic, partitions=4)
    expected = fill(broker.bootstrap, topic, range(80), 4)
    first = start(protocol, topic)
    until_received([first], 80)
    first.consumer.commit(asynchronous=False)
    second = start(protocol, topic)
    until_share([first, second], topic, 4)
    expected += fill(broker.bootstrap, topic, range(80, 160), 4)

    assert sorted(expected) == until_received([first, second], 160)


def test_cooperative_keeps_what_stays(broker, topic, start):
    """In a cooperative rebalance, is only that taken from a member which goes to the other?"""
    create_topic(broker.bootstrap, topic, partitions=4)
    first = start("cooperative", topic)
    until_share([first], topic, 4)
    second = start("cooperative", topic)
    until_share([first, second], topic, 4)

    taken = [partitions for what, partitions in first.events if what == "revoked" and partitions]

    assert [[number for _, number in second.held]] == taken


@by_either
def test_commit_sync_and_async(broker, topic, start, protocol):
    """Are synchronous and asynchronous commits kept, with their notes, and told by committed()?"""
    create_topic(broker.bootstrap, topic, partitions=3)
    member = start(protocol, topic)
    until_share([member], topic, 3)

    done = member.consumer.commit(offsets=[TopicPartition(topic, 0, 7, "a note")], asynchronous=False)
    member.consumer.commit(offsets=[TopicPartition(topic, 1, 9)], asynchronous=True)
    until([member], lambda: member.commits != [], "the asynchronous commit is reported")

    assert [(1, 9, None)] == [(place.partition, place.offset, place.error) for place in member.commits[0]]
    assert [(0, 7, None)] == [(place.partition, place.offset, place.error) for place in done]
    assert [(7, "a note"), (9, ""), (confluent_kafka.OFFSET_INVALID, "")] == [
        (offset, note or "") for offset, note in member.committed(topic, 0, 1, 2)
    ]


@by_either
def test_auto_commit(broker, topic, start, protocol):
    """Does a consumer that commits by itself do so while it runs and when it closes?"""
    create_topic(broker.bootstrap, topic)
    fill(broker.bootstrap, topic, range(10))
    member = start(protocol, topic, **{"enable.auto.commit": True, "auto.commit.interval.ms": 50})
    until_received([member], 10)
    until([member], lambda: member.committed(topic, 0)[0][0] == 10, "it commits while it runs")
    closing = start(protocol, topic, **{"enable.auto.commit": True, "auto.commit.interval.ms": 3_600_000})
    member.close()
    fill(broker.bootstrap, topic, range(10, 15))
    until_received([closing], 5)
    closing.close()

    last = start(protocol, topic)
    until_share([last], topic, 1)
    assert last.committed(topic, 0)[0][0] == 15


@by_either
def test_pause_resume_seek(broker, topic, start, protocol):
    """Does a paused partition stay silent, go on where it was, and can one seek in an assignment?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    fill(broker.bootstrap, topic, range(4), 2)
    member = start(protocol, topic)
    until_received([member], 4)
    member.consumer.pause([TopicPartition(topic, 0)])
    fill(broker.bootstrap, topic, range(4, 10), 2)
    until([member], lambda: sum(seen.partition == 1 for seen in member.records) == 5, "the other partition goes on")
    paused = [seen.offset for seen in member.records if seen.partition == 0]
    member.consumer.resume([TopicPartition(topic, 0)])
    until_received([member], 10)
    member.consumer.seek(TopicPartition(topic, 1, 3))
    until_received([member], 12)

    assert [0, 1] == paused
    assert [0, 1, 2, 3, 4] == [seen.offset for seen in member.records if seen.partition == 0]
    assert [0, 1, 2, 3, 4, 3, 4] == [seen.offset for seen in member.records if seen.partition == 1]


@by_either
def test_offsets_for_times(broker, topic, start, protocol):
    """Does a group member find offsets by time, and -1 after the last record?"""
    create_topic(broker.bootstrap, topic)
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"x", timestamp_ms=1_700_000_000_000 + n) for n in range(9)])
    member = start(protocol, topic)
    until_share([member], topic, 1)

    def found(after_ms: int) -> int:
        wanted = [TopicPartition(topic, 0, 1_700_000_000_000 + after_ms)]
        return member.consumer.offsets_for_times(wanted, DEADLINE_S)[0].offset

    assert [0, 4, confluent_kafka.OFFSET_END] == [found(-5), found(4), found(9)]


@by_either
def test_static_member(broker, topic, start, protocol):
    """Does a static member come back to the partitions it had, without the other one noticing?"""
    create_topic(broker.bootstrap, topic, partitions=4)
    first = start(protocol, topic, **{"group.instance.id": "one"})
    second = start(protocol, topic, **{"group.instance.id": "two"})
    until_share([first, second], topic, 4)
    before, events = second.held, list(first.events)
    second.close()
    again = start(protocol, topic, **{"group.instance.id": "two"})
    until_share([first, again], topic, 4)

    assert before == again.held
    assert events == first.events


def test_fenced_static_member(broker, topic, start):
    """Is the older of two classic members with one instance id told that it was fenced?"""
    create_topic(broker.bootstrap, topic)
    first = start("range", topic, **{"group.instance.id": "one"})
    until_share([first], topic, 1)
    second = start("range", topic, **{"group.instance.id": "one"})
    until_share([second], topic, 1)

    until([first, second], lambda: bool(first.errors), "the older one is told")

    assert {confluent_kafka.KafkaError._FATAL, confluent_kafka.KafkaError.FENCED_INSTANCE_ID} & {
        error.code() for error in first.errors
    }


@by_either
def test_pattern(broker, topic, start, protocol):
    """Does a member that subscribed to `^prefix.*` get the topics that fit, and the one that comes later?"""
    prefix = f"followed-{protocol}"
    create_topic(broker.bootstrap, f"{prefix}-1")
    create_topic(broker.bootstrap, f"not-{prefix}")
    member = start(protocol, f"^{prefix}.*")
    until([member], lambda: member.held == [(f"{prefix}-1", 0)], "the first topic")
    create_topic(broker.bootstrap, f"{prefix}-2", partitions=2)
    every = [(f"{prefix}-1", 0), (f"{prefix}-2", 0), (f"{prefix}-2", 1)]

    until([member], lambda: member.held == every, "the second topic")


@by_protocol
def test_close_is_quick(broker, topic, start, protocol):
    """Does closing leave the group at once, so that the other has everything long before a session ends?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    patient = {} if protocol.startswith("consumer") else {"session.timeout.ms": 10 * 1000 * int(DEADLINE_S)}
    first = start(protocol, topic, **patient)
    second = start(protocol, topic, **patient)
    until_share([first, second], topic, 2)

    second.close()

    until_share([first], topic, 2)


def test_member_that_died(broker, topic, start):
    """Does a classic member that stops talking lose its partitions to the others after its session?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    quick = {"session.timeout.ms": 1000, "max.poll.interval.ms": 1000}
    first = start("range", topic, **quick)
    silent = start("range", topic, **quick)
    until_share([first, silent], topic, 2)

    until_share([first], topic, 2)  # the other is not polled any more

    until([silent], lambda: bool(silent.errors), "it is told when it polls again")
    assert confluent_kafka.KafkaError._MAX_POLL_EXCEEDED in {error.code() for error in silent.errors}


def test_commit_of_an_old_generation(broker, topic, start):
    """Is a commit refused that names a member which is not in the group?"""
    create_topic(broker.bootstrap, topic)
    member = start("range", topic)
    until_share([member], topic, 1)
    stranger = start("range")  # in the same group, but it never joined

    with pytest.raises(confluent_kafka.KafkaException) as caught:
        stranger.consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    assert caught.value.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID

"""How far a group is behind on a topic, and whether a broker answers: asked by the demo while things come and go."""

from __future__ import annotations

from headrace.client.fault import ClientFault
from headrace.model.errors import HeadraceError

_ANSWER_MS = 2000


def answers(bootstrap: str) -> bool:
    """Whether a broker answers there, asked once."""
    from headrace.client.blocking_channel import BlockingChannel
    from headrace.client.options import connection_options

    host, _, port = bootstrap.rpartition(":")
    impatient = {"request.timeout.ms": str(_ANSWER_MS), "socket.connection.setup.timeout.ms": str(_ANSWER_MS)}
    try:
        BlockingChannel(host, int(port), connection_options(bootstrap, impatient)).close()
    except ClientFault:
        return False
    return True


def group_lag(bootstrap: str, *, group: str, topic: str) -> int | None:
    """How many records of the topic the group has not read; None if nobody can say now."""
    from headrace import KafkaAdmin, TopicPartition

    try:
        with KafkaAdmin(bootstrap_servers=bootstrap, request_timeout_ms=_ANSWER_MS) as admin:
            (found,) = admin.describe_topics([topic])
            places = [TopicPartition(topic, partition.partition) for partition in found.partitions]
            ends = admin.list_offsets(dict.fromkeys(places, "latest"))
            done = admin.list_group_offsets(group)
    except HeadraceError:
        return None
    return sum(end.offset - (done[place].offset if place in done else 0) for place, end in ends.items())

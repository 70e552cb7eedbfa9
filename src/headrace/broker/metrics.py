"""What this node tells Prometheus, under the names that dashboards for Kafka know (those of its JMX exporter).

Nothing is kept for it: the numbers lie where the work is done and are read when somebody asks. Names and labels follow
`kafka_<domain>_<type>_<name>`; counters end in `_total`, and what a topic has is also there for all topics together,
without the label.
"""

from __future__ import annotations

import logging
from itertools import chain
from typing import TYPE_CHECKING

from headrace.model.exposition import CONTENT_TYPE, Family, counter, gauge, labelled, render
from headrace.net.http_responder import HttpResponder, Page
from headrace.net.process_stats import process_families
from headrace.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition

logger = logging.getLogger(__name__)

PRODUCE, FETCH = 0, 1
RUNNING = 3
"""As Kafka numbers the states of a broker."""
_MS = 1_000_000

_TRAFFIC = {
    "messages_in": ("messagesin", "Records written by producers."),
    "bytes_in": ("bytesin", "Bytes written by producers."),
    "bytes_out": ("bytesout", "Bytes read by consumers."),
    "replication_bytes_in": ("replicationbytesin", "Bytes copied from other brokers."),
    "replication_bytes_out": ("replicationbytesout", "Bytes copied by other brokers."),
}


class Metrics:
    """The pages of one node, on the address in `metrics.listener`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._responder: HttpResponder | None = None

    @property
    def port(self) -> int:
        """Where it is served; 0 where it is not."""
        return self._responder.port if self._responder is not None else 0

    async def start(self) -> None:
        """Serve them, where that is asked for; a broker whose metrics cannot be had still serves its clients."""
        address = self._broker.config.metrics_address
        if address is None:
            return
        pages = {"/metrics": Page(CONTENT_TYPE, self.text), "/healthy": Page("text/plain", lambda: ("ok\n",))}
        responder = HttpResponder(pages)
        try:
            await responder.start(address.host, address.port)
        except OSError as error:
            logger.error("metrics_not_served address=%s:%d reason=%s", *address, error.strerror or error)  # noqa: TRY400
            return
        self._responder = responder
        logger.info("metrics_served address=%s:%d", address.host, responder.port)

    async def stop(self) -> None:
        """Hang up."""
        if self._responder is not None:
            await self._responder.stop()
            self._responder = None

    def text(self) -> Iterator[str]:
        """All of it, as of now."""
        return render(families(self._broker))


def families(broker: Broker) -> Iterator[Family]:
    """Everything that is measured."""
    themes = [_requests(broker), _connections(broker), _quorum(broker)]
    if "broker" in broker.config.roles:
        themes += [_traffic(broker), _replicas(broker), _logs(broker), _coordinators(broker)]
    if "controller" in broker.config.roles:
        themes.append(_cluster(broker))
    return chain(*themes, process_families())


# --- what goes through


def _traffic(broker: Broker) -> Iterator[Family]:
    traffics = broker.partitions.traffics
    for topic in [name for name in traffics.by_topic if name not in broker.metadata.topics]:
        traffics.forget(topic)
    total = traffics.total()
    for field, (name, sentence) in _TRAFFIC.items():
        rows: list[tuple[dict[str, str], int]] = [({}, getattr(total, field))]
        rows += [({"topic": topic}, getattr(one, field)) for topic, one in sorted(traffics.by_topic.items())]
        yield labelled(f"kafka_server_brokertopicmetrics_{name}_total", "counter", sentence, rows)
    for name, sentence, value in (
        ("totalproducerequests", "Produce requests answered.", broker.request_times[PRODUCE].count),
        ("totalfetchrequests", "Fetch requests answered, followers' included.", broker.request_times[FETCH].count),
        ("failedproducerequests", "Partitions of produce requests that were refused.", traffics.failed_produces),
        ("failedfetchrequests", "Partitions of fetch requests that were refused.", traffics.failed_fetches),
    ):
        yield counter(f"kafka_server_brokertopicmetrics_{name}_total", sentence, value)


def _requests(broker: Broker) -> Iterator[Family]:
    asked = {APIS[key].name: times for key, times in broker.request_times.items() if times.count}
    yield labelled(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        "Requests answered.",
        (({"request": name}, times.count) for name, times in asked.items()),
    )
    yield Family(
        "kafka_network_requestmetrics_totaltimems",
        "histogram",
        "Milliseconds from a request's arrival to its answer; of Produce and Fetch, how long they had to wait.",
        chain.from_iterable(times.samples({"request": name}, unit_ns=_MS) for name, times in asked.items()),
    )


def _connections(broker: Broker) -> Iterator[Family]:
    yield labelled(
        "kafka_server_socketservermetrics_connection_count",
        "gauge",
        "Connections that are open.",
        (({"listener": one.name}, len(one.connections)) for one in broker.listeners),
    )


# --- what is kept


def _replicas(broker: Broker) -> Iterator[Family]:
    held = list(broker.partitions)
    led = [partition for partition in held if partition.is_led]
    changes = broker.replicas.isr_changes
    prefix = "kafka_server_replicamanager"
    yield gauge(f"{prefix}_partitioncount", "Partitions on this broker.", len(held))
    yield gauge(f"{prefix}_leadercount", "Partitions that this broker leads.", len(led))
    yield gauge(
        f"{prefix}_underreplicatedpartitions",
        "Partitions led here of which some replica is not in sync.",
        sum(_in_sync(one) < _replica_count(broker, one) for one in led),
    )
    yield gauge(
        f"{prefix}_underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        sum(_in_sync(one) < one.config.min_insync_replicas for one in led),
    )
    yield gauge(f"{prefix}_offlinereplicacount", "Logs that cannot be used.", len(broker.partitions.offline))
    yield counter(f"{prefix}_isrshrinks_total", "Replicas that fell behind and were taken out.", changes.shrinks)
    yield counter(f"{prefix}_isrexpands_total", "Replicas that have caught up and came back.", changes.expands)
    lags = [one.replica.follower.lag for one in held if one.replica is not None and one.replica.follower is not None]
    yield gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "Records that the replica furthest behind lacks of what is committed.",
        max(lags, default=0),
    )


def _in_sync(partition: Partition) -> int:
    if partition.replicated is not None:
        return len(partition.replicated.isr.committed)
    return 1


def _replica_count(broker: Broker, partition: Partition) -> int:
    topic = broker.metadata.topics.get(partition.topic)
    return len(topic.partitions[partition.index].replicas) if topic is not None else 1


def _logs(broker: Broker) -> Iterator[Family]:
    held = sorted(broker.partitions, key=lambda one: (one.topic, one.index))
    named = [({"topic": one.topic, "partition": str(one.index)}, one.log) for one in held]
    for name, sentence, read in (
        ("size", "Bytes of a log on the disk.", lambda log: log.size_bytes),
        ("logendoffset", "The offset that the next record gets.", lambda log: log.log_end_offset),
        ("logstartoffset", "The offset of the first record.", lambda log: log.log_start_offset),
        ("numlogsegments", "Files that a log consists of.", lambda log: len(log.segments())),
    ):
        rows = [(labels, read(log)) for labels, log in named]
        yield labelled(f"kafka_log_log_{name}", "gauge", sentence, rows)
    offline = len(broker.store.failed_dirs) + sum(not one.online for one in broker.store.log_dirs)
    yield gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that have failed.", offline)


def _coordinators(broker: Broker) -> Iterator[Family]:
    groups = [group for shard in broker.groups.shards for group in shard.core.groups.values()]
    yield gauge("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups coordinated here.", len(groups))
    states: dict[tuple[str, str], int] = {}
    for group in groups:
        key = (group.kind.value.lower(), group.state_name)
        states[key] = states.get(key, 0) + 1
    yield labelled(
        "kafka_coordinator_group_groupmetadatamanager_groups",
        "gauge",
        "Groups coordinated here, by kind and state.",
        (({"type": kind, "state": state}, count) for (kind, state), count in sorted(states.items())),
    )


# --- the cluster


def _quorum(broker: Broker) -> Iterator[Family]:
    quorum = broker.quorum
    prefix = "kafka_server_raft_metrics"
    yield gauge(f"{prefix}_current_leader", "The node that leads the quorum, -1 if none is known.", quorum.leader_id)
    yield gauge(f"{prefix}_current_epoch", "The quorum's epoch.", quorum.leader_epoch)
    yield gauge(f"{prefix}_log_end_offset", "Where the metadata log ends here.", quorum.next_offset)
    yield gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the node that is the active controller.",
        int(quorum.is_active),
    )
    if "broker" in broker.config.roles:
        yield gauge("kafka_server_kafkaserver_brokerstate", "3 while the broker serves.", RUNNING)


def _cluster(broker: Broker) -> Iterator[Family]:
    metadata = broker.metadata
    states = [state for topic in metadata.topics.values() for state in topic.partitions]
    fenced = sum(one.fenced for one in metadata.brokers.values())
    for name, sentence, value in (
        ("globaltopiccount", "Topics of the cluster.", len(metadata.topics)),
        ("globalpartitioncount", "Partitions of the cluster.", len(states)),
        ("offlinepartitionscount", "Partitions that nobody leads.", sum(one.leader < 0 for one in states)),
        (
            "preferredreplicaimbalancecount",
            "Partitions that another than their first replica leads.",
            sum(one.leader != one.replicas[0] for one in states if one.replicas),
        ),
        ("activebrokercount", "Brokers that serve.", len(metadata.brokers) - fenced),
        ("fencedbrokercount", "Brokers that are registered and do not serve.", fenced),
    ):
        yield gauge(f"kafka_controller_kafkacontroller_{name}", sentence, value)

"""The fleet's topics: one per stage, made before anybody sends."""

import os
import sys

from headrace import KafkaAdmin, KafkaError, NewTopic

GPS, POSITIONS, ALERTS, STATS, DEAD_LETTERS = (
    "trucks_gps",
    "trucks_positions",
    "trucks_alerts",
    "trucks_stats",
    "trucks_dlq",
)
ALREADY_THERE = 36

_HOUR_MS = str(3_600_000)

TOPICS = {
    GPS: (10, {}),
    # The latest position of every truck stays for ever, all of them for an hour: a trail, and what accounting counts.
    POSITIONS: (10, {"cleanup.policy": "compact", "min.compaction.lag.ms": _HOUR_MS}),
    ALERTS: (3, {}),
    STATS: (3, {}),
    DEAD_LETTERS: (1, {}),
}
"""Partitions and settings of each."""


def make_topics(bootstrap: str) -> None:
    """Make the topics that are not there yet, replicated as widely as there are brokers, up to three."""
    with KafkaAdmin(bootstrap_servers=bootstrap) as admin:
        copies = min(3, len(admin.describe_cluster().brokers))
        for name, (partitions, settings) in TOPICS.items():
            try:
                admin.create_topics(
                    [NewTopic(name, num_partitions=partitions, replication_factor=copies, topic_configs=settings)]
                )
            except KafkaError as error:
                if error.code != ALREADY_THERE:
                    raise


if __name__ == "__main__":
    make_topics(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])

"""The admin client: topics, settings, groups and their offsets.

bin/headrace python examples/administration.py [bootstrap servers]
"""

import os
import sys

from headrace import ConfigResource, KafkaAdmin, NewTopic, TopicPartition


def main(bootstrap: str) -> None:
    """Make a topic, look at it, change it, move a group, and take it all away."""
    with KafkaAdmin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("parcels", num_partitions=3, topic_configs={"retention.ms": "86400000"})])
        (topic,) = admin.describe_topics(["parcels"])
        print(f"{topic.name} has {len(topic.partitions)} partitions")

        admin.alter_configs([ConfigResource("topic", "parcels", {"retention.ms": "3600000"})])
        (settings,) = admin.describe_configs([ConfigResource("topic", "parcels", {"retention.ms": None})])
        print(f"records are kept for {settings['retention.ms'].value} ms")

        admin.alter_group_offsets("sorters", {TopicPartition("parcels", 0): 0})
        print(f"sorters go on at {admin.list_group_offsets('sorters')[TopicPartition('parcels', 0)].offset}")

        admin.delete_groups(["sorters"])
        admin.delete_topics(["parcels"])
        print(f"parcels is {'still there' if 'parcels' in admin.list_topics() else 'gone'}")


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])

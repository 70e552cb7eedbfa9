"""The plain clients: send readings of trucks, and read them back in a group.

bin/headrace python examples/send_and_read.py [bootstrap servers]
"""

import os
import sys

from headrace import KafkaConsumer, KafkaProducer

TOPIC = "truck-readings"


def main(bootstrap: str) -> None:
    """Send three records, then read them."""
    with KafkaProducer(bootstrap_servers=bootstrap, key_serializer="str", value_serializer="json") as producer:
        for speed_kmh in (62, 71, 80):
            stored = producer.send(TOPIC, {"speed_kmh": speed_kmh}, key="T-0042", headers=[("source", b"gps")])
            print(f"stored at offset {stored.get(timeout=10).offset}")

    with KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="dashboard",
        auto_offset_reset="earliest",
        key_deserializer="str",
        value_deserializer="json",
    ) as consumer:
        for count, record in enumerate(consumer, start=1):
            print(f"{record.key}: {record.value['speed_kmh']} km/h")
            if count == 3:
                break


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])

"""A client on a host of its own: `distant_client.py BOOTSTRAP TOPIC COUNT` writes so many records and reads them."""

import sys

from confluent_kafka import Consumer, Producer

PATIENCE_S = 60.0
POLL_S = 1.0


def main() -> None:
    """Print how many were acknowledged, how many different ones the group read, and the addresses of all brokers."""
    bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    acknowledged = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"})
    for number in range(count):
        producer.produce(
            topic, f"record {number}", on_delivery=lambda error, _: None if error else acknowledged.append(1)
        )
    producer.flush(PATIENCE_S)
    settings = {"bootstrap.servers": bootstrap, "group.id": "distant", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found: set[bytes] = set()
    for _ in range(int(PATIENCE_S / POLL_S)):
        values = (message.value() for message in consumer.consume(count, POLL_S) if message.error() is None)
        found |= {value for value in values if value.startswith(b"record ")}
        if len(found) == count:
            break
    brokers = sorted(f"{broker.host}:{broker.port}" for broker in consumer.list_topics().brokers.values())
    consumer.close()
    print(len(acknowledged), len(found), *brokers)


if __name__ == "__main__":
    main()

"""Send a few events to a broker, and read back everything a topic holds.

    bin/headrace python examples/first_events.py send "first event" "second event"
    bin/headrace python examples/first_events.py read

Plain confluent-kafka: nothing in here knows that the broker is Headrace.
"""

import argparse
import os

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition


def send(bootstrap: str, topic: str, events: list[str]) -> None:
    """Send each event, and say where it was stored once the broker has it safely on disk."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})

    def stored(error, message) -> None:  # noqa: ANN001 - the library's own types are not public
        print(error or f"stored in {message.topic()}-{message.partition()} at offset {message.offset()}")

    for event in events:
        producer.produce(topic, value=event.encode(), on_delivery=stored)
    if producer.flush(30):
        raise SystemExit(f"No answer from {bootstrap}. Is a broker running? Start it with: bin/headrace start")


def read(bootstrap: str, topic: str) -> None:
    """Print every event the topic holds now, partition by partition in the order they were stored."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first-events", "enable.auto.commit": False})
    for number in sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions):
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING)])
        position = 0
        while position < end:
            message = consumer.poll(10)
            if message is None or message.error():
                raise SystemExit(f"Reading stopped at offset {position}: {message and message.error()}")
            print(f"{message.offset()}: {message.value().decode()}")
            position = message.offset() + 1
    consumer.close()


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default=os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092"))
    parser.add_argument("--topic", default="first-events")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("send", help="send events").add_argument("events", nargs="+")
    actions.add_parser("read", help="read all events back")
    options = parser.parse_args()
    where = options.bootstrap_server, options.topic
    send(*where, options.events) if options.action == "send" else read(*where)


if __name__ == "__main__":
    main()

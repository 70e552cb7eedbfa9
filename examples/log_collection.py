"""Log collection: services log as they always do, the lines travel to one place and are kept file by file.

bin/headrace python examples/log_collection.py [bootstrap servers]
"""

import logging
import os
import sys
import tempfile
from itertools import islice
from pathlib import Path

from headrace import KafkaConsumer, KafkaProducer

TOPIC = "logs"


class TopicHandler(logging.Handler):
    """A logging handler that sends lines to a topic, keyed by the logger's name, the level in a header."""

    def __init__(self, producer: KafkaProducer) -> None:
        super().__init__()
        self._producer = producer

    def emit(self, record: logging.LogRecord) -> None:
        """Hand one line over; it is sent in the background, so that logging does not slow a service down."""
        level = [("level", record.levelname.encode())]
        self._producer.send(TOPIC, self.format(record), key=record.name, headers=level)


def main(bootstrap: str) -> None:
    """Let two services log, collect the lines into a file per service, and show the errors."""
    with KafkaProducer(bootstrap_servers=bootstrap, key_serializer="str", value_serializer="str") as producer:
        for service in ("billing", "shipping"):
            log = logging.getLogger(service)
            log.setLevel(logging.INFO)
            log.propagate = False
            log.addHandler(TopicHandler(producer))
            log.info("%s is up", service)
        logging.getLogger("shipping").error("no lorry left")

    with (
        tempfile.TemporaryDirectory() as place,
        KafkaConsumer(
            TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id="collector"
        ) as collector,
    ):
        for line in islice(collector, 3):
            with (Path(place) / f"{line.key.decode()}.log").open("ab") as file:
                file.write(line.value + b"\n")
            if dict(line.headers)["level"] == b"ERROR":
                print(f"error in {line.key.decode()}: {line.value.decode()}")
        for file in sorted(Path(place).iterdir()):
            print(f"{file.name}: {len(file.read_text().splitlines())} lines")


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])

"""Activity tracking: a web shop records what its visitors do; each application makes its own sense of it.

bin/headrace python examples/activity_tracking.py [bootstrap servers]
"""

import os
import sys
from collections import Counter, defaultdict
from itertools import islice

from headrace import KafkaAdmin, KafkaConsumer, KafkaProducer, NewTopic

TOPIC = "visitor-activity"
ACTIVITY = (
    ("ada", "view", "/lamps"),
    ("bob", "view", "/chairs"),
    ("ada", "search", "reading lamp"),
    ("ada", "view", "/lamps/12"),
    ("bob", "view", "/lamps"),
    ("ada", "buy", "/lamps/12"),
)
READERS = {"auto_offset_reset": "earliest", "key_deserializer": "str", "value_deserializer": "json"}


def record_activity(bootstrap: str) -> None:
    """The web shop: one record per action, keyed by visitor, so that what one visitor does stays in order."""
    with KafkaProducer(bootstrap_servers=bootstrap, key_serializer="str", value_serializer="json") as producer:
        for visitor, action, what in ACTIVITY:
            producer.send(TOPIC, {"action": action, "what": what}, key=visitor)


def activity(bootstrap: str, application: str) -> KafkaConsumer:
    """What was recorded since the application last looked, at first everything; each has a place of its own."""
    return KafkaConsumer(TOPIC, bootstrap_servers=bootstrap, group_id=application, **READERS)


def main(bootstrap: str) -> None:
    """Record, then look at it as two different applications would."""
    with KafkaAdmin(bootstrap_servers=bootstrap) as admin:
        if TOPIC not in admin.list_topics():
            admin.create_topics([NewTopic(TOPIC, num_partitions=3)])
    record_activity(bootstrap)

    with activity(bootstrap, "popular-pages") as records:
        actions = [record.value for record in islice(records, len(ACTIVITY))]
    views = Counter(done["what"] for done in actions if done["action"] == "view")
    print("most viewed:", *views.most_common(1)[0])

    paths = defaultdict(list)
    with activity(bootstrap, "visitor-paths") as records:
        for record in islice(records, len(ACTIVITY)):
            paths[record.key].append(record.value["what"])
    for visitor in sorted(paths):
        print(f"{visitor}: {' > '.join(paths[visitor])}")


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])

"""What the tests of REST v2 share: topics of their own, and reading until something is there."""

import time
from itertools import count

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic

V2 = {"content-type": "application/vnd.kafka.v2+json"}
JSON = "application/vnd.kafka.json.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
TEXT = "application/vnd.kafka.text.v2+json"
DEADLINE_S = 30.0
_NUMBERS = count()


def new_topic(broker, *, partitions=1, **configs):
    """A topic nobody else uses."""
    name = f"rest-{next(_NUMBERS)}"
    settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1, topic_configs=settings)])
    return name


def produce(http, path, *records, media=JSON, expect=200):
    """Store records, and give the lines of the answer."""
    answer = http.post(path, headers={"content-type": media}, json={"records": list(records)})
    assert answer.status_code == expect, answer.text
    return answer.json()["offsets"]


def end_of(http, topic, partition=0):
    """Behind the last record."""
    return http.get(f"/topics/{topic}/partitions/{partition}/offsets").json()["end_offset"]


def new_instance(http, **options):
    """An instance in a group nobody else uses; gives its path."""
    group = f"group-{next(_NUMBERS)}"
    body = {"auto.offset.reset": "earliest", **options}
    answer = http.post(f"/consumers/{group}", headers=V2, json=body)
    assert answer.status_code == 200, answer.text
    return f"/consumers/{group}/instances/{answer.json()['instance_id']}"


def subscribe(http, instance, *topics):
    """Subscribe an instance to topics."""
    answer = http.post(f"{instance}/subscription", headers=V2, json={"topics": list(topics)})
    assert answer.status_code == 204, answer.text


def read(http, instance, number, **query):
    """Read until so many records are there."""
    found = []
    until = time.monotonic() + DEADLINE_S
    while len(found) < number and time.monotonic() < until:
        answer = http.get(f"{instance}/records", params={"timeout": 1000, **query})
        assert answer.status_code == 200, answer.text
        found += answer.json()
    assert len(found) == number, found
    return found


def refusal(answer):
    """Status and number of an answer that is a refusal, which always has a sentence."""
    body = answer.json()
    assert " " in body["message"], body
    return answer.status_code, body["error_code"]

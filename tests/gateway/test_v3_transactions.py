"""Transactions and the quorum through the gateway's own routes beside REST v3."""

import uuid
from urllib.parse import quote

import pytest

from hanging import leave_hanging
from headrace import ConfigResource, ConfigResourceType, KafkaProducer
from wire_client import WireClient


@pytest.fixture
def transaction(broker, topic):
    """A transaction that is open, whose name has a slash in it."""
    name = f"mover/{uuid.uuid4().hex[:8]}"
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name) as producer:
        producer.begin_transaction()
        producer.send(topic, b"perhaps", partition=1)
        producer.flush()
        yield name


@pytest.fixture
def hanging(broker, writer, topic):
    """A transaction that no coordinator knows."""
    name = "transaction.partition.verification.enable"
    writer.admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "", {name: "false"})])
    with WireClient(broker.port) as wire:
        leave_hanging(wire, topic, 0, 4711)
    writer.admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "", {name: None})])


def test_quorum(http, here):
    """Is the quorum told as kafka-metadata-quorum tells it?"""
    quorum = http.get(f"{here}/metadata-quorum").json()

    assert ("KafkaMetadataQuorum", 1, []) == (quorum["kind"], quorum["leader_id"], quorum["observers"])
    assert quorum["high_watermark"] <= quorum["voters"][0]["log_end_offset"]
    assert len(quorum["voters"][0]["directory_id"]) == 22


def test_a_transaction_is_aborted(http, here, topic, transaction):
    """Is an open transaction listed and described, and at rest once it was aborted?"""
    listed = {one["transactional_id"]: one for one in http.get(f"{here}/transactions").json()["data"]}
    own = listed[transaction]["metadata"]["self"]
    found = http.get(own).json()
    ended = http.post(f"{own}/abort")

    assert own.endswith(f"/transactions/{quote(transaction, safe='')}")
    assert ("Ongoing", [{"topic_name": topic, "partition_id": 1}]) == (found["state"], found["partitions"])
    assert found["start_timestamp"] > 0
    assert http.get(found["coordinator"]["related"]).json()["broker_id"] == 1
    assert (204, b"") == (ended.status_code, ended.content)
    assert http.get(own).json()["partitions"] == []


@pytest.mark.usefixtures("hanging")
def test_what_hangs_is_aborted(http, here, topic):
    """Is a hanging transaction found, and gone when it was aborted?"""
    url = f"{here}/transactions:hanging"
    (found,) = [one for one in http.get(url, params={"silent_minutes": 0}).json()["data"] if one["topic_name"] == topic]
    named = {name: found[name] for name in ("topic_name", "partition_id", "start_offset")}
    first, again = (http.post(f"{here}/transactions:abort-hanging", json=named) for _ in range(2))

    assert (0, 4711) == (found["partition_id"], found["producer_id"])
    assert (204, 404) == (first.status_code, again.status_code)
    assert "No transaction that begins at offset 0" in again.json()["message"]
    assert topic not in {one["topic_name"] for one in http.get(url, params={"silent_minutes": 0}).json()["data"]}


def test_nobody_is_made_by_an_abort(http, here):
    """Is an id that nobody uses answered with its number, and not made by asking to abort it?"""
    url = f"{here}/transactions/absent-{uuid.uuid4().hex[:8]}"
    answers = [http.get(url), http.post(f"{url}/abort"), http.get(url)]

    assert [(404, 40407)] * 3 == [(one.status_code, one.json()["error_code"]) for one in answers]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"topic_name": "absent", "partition_id": 0, "start_offset": 0}, 404),
        ({"topic_name": "absent", "partition_id": -1, "start_offset": 0}, 422),
        ({"topic_name": "absent"}, 422),
    ],
)
def test_bad_abort(http, here, body, status):
    """Is an abort that names nothing refused?"""
    assert status == http.post(f"{here}/transactions:abort-hanging", json=body).status_code

"""From an image to what a snapshot says, by records."""

from random import Random
from uuid import UUID

import pytest

from headrace.coordination.quorum.takeover import way_to
from headrace.cores.controller.snapshot import snapshot_records
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC, Metadata
from headrace.model.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)


def copied(records):
    """An image, made from records."""
    image = Metadata()
    for record in records:
        image.replay(record)
    return image


def random_image(chance, names):
    """Some topics, brokers, features and settings, drawn by chance."""
    records = []
    for number, name in enumerate(names):
        if chance.random() < 0.6:
            topic_id = UUID(int=1000 + 2 * number + chance.randint(0, 1))
            records.append(TopicRecord(name=name, topic_id=topic_id))
            records += [
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=(1, 2),
                    isr=(1, 2)[: chance.randint(1, 2)],
                    leader=1,
                    leader_epoch=chance.randint(0, 2),
                )
                for index in range(2)
            ]
            for setting in ("retention.ms", "segment.bytes"):
                if chance.random() < 0.5:
                    value = str(chance.randint(1, 2))
                    records.append(
                        ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=name, name=setting, value=value)
                    )
    for broker in range(3):
        if chance.random() < 0.5:
            records.append(RegisterBrokerRecord(broker_id=broker, broker_epoch=chance.randint(1, 3)))
            records.append(ConfigRecord(resource_type=RESOURCE_BROKER, resource_name=str(broker), name="x", value="1"))
    for feature in ("metadata.version", "group.version"):
        if chance.random() < 0.5:
            records.append(FeatureLevelRecord(name=feature, feature_level=chance.randint(1, 5)))
    records.append(ProducerIdsRecord(next_producer_id=chance.randint(1, 3) * 1000))
    return copied(records)


@pytest.mark.parametrize("seed", range(200))
def test_any_image_comes_to_any_snapshot(seed):
    """Is the image what the snapshot says after the records were replayed, whatever both were?"""
    chance = Random(seed)
    names = [f"topic-{n}" for n in range(5)]
    image, wanted = random_image(chance, names), random_image(chance, names)

    for record in way_to(image, list(snapshot_records(wanted))):
        image.replay(record)

    assert wanted == image


def test_nothing_new_is_no_records():
    """Is a snapshot of what the image has no news, but for what cannot be compared?"""
    image = random_image(Random(1), ["a", "b", "c"])

    news = way_to(image, list(snapshot_records(image)))

    assert [ProducerIdsRecord] == [type(record) for record in news]


def test_a_topic_made_anew_is_removed_first():
    """Is a topic of the same name and another id told as a removal and a creation, its settings included?"""
    setting = ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="t", name="retention.ms", value="5")
    image = copied([TopicRecord(name="t", topic_id=UUID(int=1000)), setting])
    snapshot = [TopicRecord(name="t", topic_id=UUID(int=2000)), setting]

    assert [RemoveTopicRecord(topic_id=UUID(int=1000)), *snapshot] == way_to(image, snapshot)


def test_from_nothing():
    """Is a snapshot taken over as it is where there was nothing?"""
    records = list(snapshot_records(random_image(Random(3), ["a", "b"])))

    assert records == way_to(Metadata(), records)

"""Every API a broker serves, in every version it serves, asked and answered over a real socket at least once.

The rows below, and those of the files beside it, say what is asked and what must come back; an API without a row fails
the test.
"""

import re
import struct
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest
from tests.scenarios import cluster_rows, coordinator_rows, share_rows

from headrace.broker.api import AMONG_NODES
from headrace.broker.dispatch import load_apis
from headrace.model.ids import ZERO_ID
from headrace.records.build import NewRecord, build_batch
from headrace.wire.apis import APIS
from headrace.wire.messages import (
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from wire_client import WireClient

TIMESTAMP_MS = 1_700_000_000_000
BATCH = bytes(build_batch([NewRecord(timestamp=TIMESTAMP_MS + n, key=b"k", value=b"%d" % n) for n in range(3)]))
TOPIC, BROKER = 2, 4
FETCH = 1
KEYS = {api.name: key for key, api in APIS.items()}

SERVED = [
    pytest.param(APIS[key].name, version, id=f"{APIS[key].name}-{version}")
    for key, api in sorted(load_apis().items())
    for version in range(api.low, api.high + 1)
]


class World(NamedTuple):
    """What a row may count on: a connection, and a topic of two partitions with three records in the first."""

    client: WireClient
    topic: str
    topic_id: UUID
    cluster: object


def by_id_from(version: int, first: int, world: World, name: str = "name") -> dict[str, object]:
    """How a topic is named in this version."""
    return {"topic_id": world.topic_id} if version >= first else {name: world.topic}


# Each row gives the request and a list of what the answer must hold, as pairs of expected and a way to find it.


def produce_row(world, version):
    data = produce.PartitionProduceData(index=0, records=BATCH)
    topic = produce.TopicProduceData(**by_id_from(version, 13, world), partition_data=(data,))
    request = produce.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))
    return request, [(3, lambda a: a.responses[0].partition_responses[0].base_offset)]


def fetch_row(world, version):
    asked = fetch.FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
    topic = fetch.FetchTopic(**by_id_from(version, 13, world, "topic"), partitions=(asked,))
    request = fetch.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=(topic,))
    return request, [
        (3, lambda a: a.responses[0].partitions[0].high_watermark),
        (BATCH[61:], lambda a: bytes(a.responses[0].partitions[0].records)[61:]),
        (world.topic_id if version >= 13 else ZERO_ID, lambda a: a.responses[0].topic_id),
    ]


def list_offsets_row(world, version):
    asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=TIMESTAMP_MS + 2)
    topic = list_offsets.ListOffsetsTopic(name=world.topic, partitions=(asked,))
    request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=(topic,))
    return request, [
        ((2, TIMESTAMP_MS + 2), lambda a: (a.topics[0].partitions[0].offset, a.topics[0].partitions[0].timestamp))
    ]


def metadata_row(world, version):
    request = metadata.MetadataRequest(topics=(metadata.MetadataRequestTopic(name=world.topic),))
    return request, [
        ([(world.topic, 2)], lambda a: [(t.name, len(t.partitions)) for t in a.topics]),
        ([("127.0.0.1", world.cluster.port)], lambda a: [(b.host, b.port) for b in a.brokers]),
        (world.topic_id if version >= 10 else ZERO_ID, lambda a: a.topics[0].topic_id),
    ]


def api_versions_row(world, version):
    request = api_versions.ApiVersionsRequest(client_software_name="wire-client", client_software_version="1.0")
    expected = [
        (api.key, api.low if api.advertised_low is None else api.advertised_low, api.high)
        for api in sorted(load_apis().values(), key=lambda api: api.key)
        if api.on_brokers
    ]
    return request, [(expected, lambda a: [(k.api_key, k.min_version, k.max_version) for k in a.api_keys])]


def create_topics_row(world, version):
    topic = create_topics.CreatableTopic(name=f"{world.topic}-new", num_partitions=3, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=1000)
    return request, [
        (3, lambda a: world.cluster.ask(lambda broker: len(broker.partitions.of_topic(f"{world.topic}-new")))),
        (3 if version >= 5 else -1, lambda a: a.topics[0].num_partitions),
        (version >= 7, lambda a: a.topics[0].topic_id != ZERO_ID),
    ]


def delete_topics_row(world, version):
    if version >= 6:
        request = delete_topics.DeleteTopicsRequest(topics=(delete_topics.DeleteTopicState(topic_id=world.topic_id),))
    else:
        request = delete_topics.DeleteTopicsRequest(topic_names=(world.topic,), timeout_ms=1000)
    return request, [
        (world.topic, lambda a: a.responses[0].name),
        ([], lambda a: world.cluster.ask(lambda broker: broker.partitions.of_topic(world.topic))),
    ]


def delete_records_row(world, version):
    asked = delete_records.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = delete_records.DeleteRecordsTopic(name=world.topic, partitions=(asked,))
    request = delete_records.DeleteRecordsRequest(topics=(topic,), timeout_ms=1000)
    return request, [(2, lambda a: a.topics[0].partitions[0].low_watermark)]


def init_producer_id_row(world, version):
    request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    return request, [(True, lambda a: a.producer_id >= 0), (0, lambda a: a.producer_epoch)]


def offset_for_leader_epoch_row(world, version):
    asked = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=world.topic, partitions=(asked,))
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,))
    return request, [((0, 3), lambda a: (a.topics[0].partitions[0].leader_epoch, a.topics[0].partitions[0].end_offset))]


def describe_configs_row(world, version):
    resource = describe_configs.DescribeConfigsResource(
        resource_type=TOPIC, resource_name=world.topic, configuration_keys=("retention.ms",)
    )
    request = describe_configs.DescribeConfigsRequest(resources=(resource,))
    return request, [([("retention.ms", "604800000")], lambda a: [(c.name, c.value) for c in a.results[0].configs])]


def alter_configs_row(world, version):
    config = alter_configs.AlterableConfig(name="retention.ms", value="5000")
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=world.topic, configs=(config,))
    request = alter_configs.AlterConfigsRequest(resources=(resource,))
    return request, [(5000, lambda a: retention_of(world))]


def incremental_alter_configs_row(world, version):
    config = incremental_alter_configs.AlterableConfig(name="retention.ms", config_operation=0, value="6000")
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name=world.topic, configs=(config,)
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,))
    return request, [(6000, lambda a: retention_of(world))]


def retention_of(world):
    return world.cluster.ask(lambda broker: broker.partitions.require(world.topic, 0).config.retention_ms)


UNKNOWN_TOPIC_OR_PARTITION = 3


def alter_replica_log_dirs_row(world, version):
    path = world.cluster.ask(lambda broker: broker.store.log_dirs[0].path)
    topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=world.topic, partitions=(0, 9))
    wanted = alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=(topic,))
    request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=(wanted,))
    rows = [(0, 0), (9, UNKNOWN_TOPIC_OR_PARTITION)]
    told = [(rows, lambda a: [(one.partition_index, one.error_code) for one in a.results[0].partitions])]
    return request, told, UNKNOWN_TOPIC_OR_PARTITION


def describe_log_dirs_row(world, version):
    topic = describe_log_dirs.DescribableLogDirTopic(topic=world.topic, partitions=(0,))
    request = describe_log_dirs.DescribeLogDirsRequest(topics=(topic,))
    return request, [(len(BATCH), lambda a: a.results[0].topics[0].partitions[0].partition_size)]


def create_partitions_row(world, version):
    topic = create_partitions.CreatePartitionsTopic(name=world.topic, count=4, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=(topic,), timeout_ms=1000)
    return request, [(4, lambda a: world.cluster.ask(lambda broker: len(broker.partitions.of_topic(world.topic))))]


def describe_cluster_row(world, version):
    request = describe_cluster.DescribeClusterRequest()
    return request, [
        ([(1, world.cluster.port)], lambda a: [(b.broker_id, b.port) for b in a.brokers]),
        (world.cluster.broker.cluster_id, lambda a: a.cluster_id),
    ]


def describe_producers_row(world, version):
    producer_id, epoch = world.client.new_producer_id()
    batch = build_batch(
        [NewRecord(timestamp=TIMESTAMP_MS, value=b"v")], producer_id=producer_id, producer_epoch=epoch, base_sequence=0
    )
    world.client.produce(world.topic, batch)
    topic = describe_producers.TopicRequest(name=world.topic, partition_indexes=(0,))
    request = describe_producers.DescribeProducersRequest(topics=(topic,))
    return request, [
        (
            [(producer_id, epoch, 0)],
            lambda a: [
                (p.producer_id, p.producer_epoch, p.last_sequence) for p in a.topics[0].partitions[0].active_producers
            ],
        )
    ]


def list_config_resources_row(world, version):
    types = (TOPIC,) if version >= 1 else ()
    request = list_config_resources.ListConfigResourcesRequest(resource_types=types)
    # Version 0 lists client-metrics resources only, and there are none.
    return request, [(version >= 1, lambda a: world.topic in [r.resource_name for r in a.config_resources])]


def describe_topic_partitions_row(world, version):
    topic = describe_topic_partitions.TopicRequest(name=world.topic)
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(topics=(topic,))
    return request, [
        (world.topic_id, lambda a: a.topics[0].topic_id),
        ([0, 1], lambda a: [p.partition_index for p in a.topics[0].partitions]),
    ]


ROWS = {
    **{name: row for name, row in globals().items() if name.endswith("_row")},
    **coordinator_rows.ROWS,
    **share_rows.ROWS,
    **cluster_rows.ROWS,
}


def row_name(api: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", api).lower() + "_row"


def error_codes(value) -> set[int]:
    """Every error code anywhere in an answer."""
    if isinstance(value, msgspec.Struct):
        found = {getattr(value, name) for name in value.__struct_fields__ if name.endswith("error_code")}
        return found.union(*(error_codes(getattr(value, name)) for name in value.__struct_fields__))
    if isinstance(value, tuple):
        return set().union(*map(error_codes, value))
    return set()


def controller_port(shared) -> int:
    return shared.ask(lambda broker: next(x.port for x in broker.listeners if x.name == "CONTROLLER"))


@pytest.mark.parametrize(("api", "version"), SERVED)
def test_served(shared, wire, topic, api, version):
    """Is this API answered in this version, without an error and with what was asked for?"""
    assert row_name(api) in ROWS, f"{api} is served but nothing here asks for it: write its row"
    client = wire(shared)
    topic_id = client.create_topic(topic, partitions=2).topic_id
    assert client.produce(topic, BATCH).base_offset == 0
    request, expected, *codes = ROWS[row_name(api)](World(client, topic, topic_id, shared), version)

    answer = (client if KEYS[api] not in AMONG_NODES else wire(controller_port(shared))).ask(api, version, request)

    assert error_codes(answer) <= {0, *codes}
    for value, find in expected:
        assert value == find(answer)


def test_every_row_is_served():
    """Is there no row for something that is not served any more?"""
    assert {row_name(APIS[key].name) for key in load_apis()} == set(ROWS)


@pytest.mark.parametrize("key", sorted(set(APIS) - {18}))
def test_versions_outside_end_the_connection(shared, wire, key):
    """Does a version that is not served end the connection, just below and just above what is?"""
    api = load_apis().get(key)
    around = (APIS[key].version_first,) if api is None else tuple({api.low - 1, api.high + 1} - {-1})
    for version in around:
        client = wire(shared)
        client.send_frame(struct.pack(">hhih", key, version, 7, -1) + b"\0" * 20)

        assert client.is_closed_by_broker()


def test_controller_listener(shared, wire):
    """Does the controller's listener serve the APIs a controller has, say so, and no others?"""
    client = wire(controller_port(shared))
    request = api_versions.ApiVersionsRequest(client_software_name="wire-client", client_software_version="1.0")
    answer = client.ask("ApiVersions", 4, request)

    served = {key for key, api in load_apis().items() if api.controller} | {FETCH}
    assert [k.api_key for k in answer.api_keys] == sorted(served)
    client.send("Metadata", 12, metadata.MetadataRequest())
    assert client.is_closed_by_broker()

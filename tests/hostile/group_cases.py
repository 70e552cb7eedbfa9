"""Requests about groups and transactions that must be refused: what is asked, and Kafka's code for it.

The table is put to Headrace and to Apache Kafka; a code that is wrong here fails there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.join_group import JoinGroupRequestProtocol
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from hostile.group_scene import (
    Scene,
    add_partitions,
    beat,
    classic_commit,
    commit,
    fetch_offsets,
    joining,
    marker,
    newcomer,
    of_producer,
    offset_delete,
    sync,
    txn_commit,
    write,
)


class Case(NamedTuple):
    """One request of an API and version, made for the scene at hand, and the codes Kafka has for it."""

    api: str
    version: int
    request: Callable[[Scene], Any]
    codes: tuple[str, ...]


CASES: dict[str, Case] = {
    # --- classic members
    "join with a short session": Case(
        "JoinGroup", 9, lambda s: joining(s.classic, session_timeout_ms=1), ("INVALID_SESSION_TIMEOUT",)
    ),
    "join with a long session": Case(
        "JoinGroup", 9, lambda s: joining(s.classic, session_timeout_ms=2**31 - 1), ("INVALID_SESSION_TIMEOUT",)
    ),
    "join without a group": Case("JoinGroup", 9, lambda s: joining(""), ("INVALID_GROUP_ID",)),
    "join as somebody": Case("JoinGroup", 9, lambda s: joining(s.classic, member_id="x"), ("UNKNOWN_MEMBER_ID",)),
    "join as somebody, no group": Case(
        "JoinGroup", 9, lambda s: joining("none-" + s.topic, member_id="x"), ("UNKNOWN_MEMBER_ID",)
    ),
    "join with another type": Case(
        "JoinGroup", 9, lambda s: joining(s.classic, protocol_type="connect"), ("INCONSISTENT_GROUP_PROTOCOL",)
    ),
    "join with another protocol": Case(
        "JoinGroup",
        9,
        lambda s: joining(s.classic, protocols=(JoinGroupRequestProtocol(name="mine", metadata=b""),)),
        ("INCONSISTENT_GROUP_PROTOCOL",),
    ),
    "join with no protocol": Case(
        "JoinGroup", 9, lambda s: joining("none-" + s.topic, protocols=()), ("INCONSISTENT_GROUP_PROTOCOL",)
    ),
    "join with no type": Case(
        "JoinGroup", 9, lambda s: joining("none-" + s.topic, protocol_type=""), ("INCONSISTENT_GROUP_PROTOCOL",)
    ),
    "sync as nobody": Case("SyncGroup", 5, lambda s: sync(s, member_id="x"), ("UNKNOWN_MEMBER_ID",)),
    "sync an old generation": Case("SyncGroup", 5, lambda s: sync(s, generation_id=0), ("ILLEGAL_GENERATION",)),
    "sync a later generation": Case("SyncGroup", 5, lambda s: sync(s, generation_id=99), ("ILLEGAL_GENERATION",)),
    "sync another type": Case(
        "SyncGroup", 5, lambda s: sync(s, protocol_type="connect"), ("INCONSISTENT_GROUP_PROTOCOL",)
    ),
    "sync another protocol": Case(
        "SyncGroup", 5, lambda s: sync(s, protocol_name="mine"), ("INCONSISTENT_GROUP_PROTOCOL",)
    ),
    "sync no group": Case(
        "SyncGroup", 5, lambda s: msgspec.structs.replace(sync(s), group_id="none"), ("UNKNOWN_MEMBER_ID",)
    ),
    "beat as nobody": Case(
        "Heartbeat",
        4,
        lambda s: HeartbeatRequest(group_id=s.classic, generation_id=s.generation, member_id="x"),
        ("UNKNOWN_MEMBER_ID",),
    ),
    "beat in no group": Case(
        "Heartbeat", 4, lambda s: HeartbeatRequest(group_id="none", member_id="x"), ("UNKNOWN_MEMBER_ID",)
    ),
    "beat without a group": Case("Heartbeat", 4, lambda s: HeartbeatRequest(member_id="x"), ("INVALID_GROUP_ID",)),
    "beat in an old generation": Case(
        "Heartbeat",
        4,
        lambda s: HeartbeatRequest(group_id=s.classic, generation_id=0, member_id=s.classic_member),
        ("ILLEGAL_GENERATION",),
    ),
    "beat with another's instance": Case(
        "Heartbeat",
        4,
        lambda s: HeartbeatRequest(
            group_id=s.classic, generation_id=s.generation, member_id=s.classic_member, group_instance_id="x"
        ),
        ("UNKNOWN_MEMBER_ID",),
    ),
    "leave as nobody": Case(
        "LeaveGroup",
        5,
        lambda s: LeaveGroupRequest(group_id=s.classic, members=(MemberIdentity(member_id="x"),)),
        ("UNKNOWN_MEMBER_ID",),
    ),
    "leave no group": Case(
        "LeaveGroup",
        5,
        lambda s: LeaveGroupRequest(group_id="none", members=(MemberIdentity(member_id="x"),)),
        ("UNKNOWN_MEMBER_ID",),
    ),
    # --- offsets
    "commit as nobody": Case("OffsetCommit", 9, lambda s: classic_commit(s, member_id="x"), ("UNKNOWN_MEMBER_ID",)),
    "commit in an old generation": Case(
        "OffsetCommit", 9, lambda s: classic_commit(s, generation_id_or_member_epoch=0), ("ILLEGAL_GENERATION",)
    ),
    "commit in a later generation": Case(
        "OffsetCommit", 9, lambda s: classic_commit(s, generation_id_or_member_epoch=99), ("ILLEGAL_GENERATION",)
    ),
    "commit past a live group": Case(
        "OffsetCommit", 9, lambda s: commit(s.classic, topic=s.topic), ("UNKNOWN_MEMBER_ID",)
    ),
    "commit past a live consumer group": Case(
        "OffsetCommit", 9, lambda s: commit(s.consumer, topic=s.topic), ("UNKNOWN_MEMBER_ID",)
    ),
    "commit with a stale epoch": Case(
        "OffsetCommit",
        9,
        lambda s: commit(
            s.consumer, topic=s.topic, member_id=s.consumer_member, generation_id_or_member_epoch=s.epoch + 7
        ),
        ("STALE_MEMBER_EPOCH",),
    ),
    "commit to no topic": Case(
        "OffsetCommit", 9, lambda s: classic_commit(s, topic="none-" + s.topic), ("UNKNOWN_TOPIC_OR_PARTITION",)
    ),
    "commit to no partition": Case(
        "OffsetCommit", 9, lambda s: classic_commit(s, partition=7), ("UNKNOWN_TOPIC_OR_PARTITION",)
    ),
    "commit to a negative partition": Case(
        "OffsetCommit", 9, lambda s: classic_commit(s, partition=-1), ("UNKNOWN_TOPIC_OR_PARTITION",)
    ),
    "commit much metadata": Case(
        "OffsetCommit", 9, lambda s: classic_commit(s, metadata="x" * 4_097), ("OFFSET_METADATA_TOO_LARGE",)
    ),
    "commit far too much metadata": Case(
        "OffsetCommit", 9, lambda s: classic_commit(s, metadata="x" * 32_767), ("OFFSET_METADATA_TOO_LARGE",)
    ),
    "commit as a member of no group": Case(
        "OffsetCommit",
        9,
        lambda s: commit("alone-" + s.topic, topic=s.topic, member_id="x", generation_id_or_member_epoch=5),
        ("GROUP_ID_NOT_FOUND",),
    ),
    "commit as a member of no group, older": Case(
        "OffsetCommit",
        8,
        lambda s: commit("alone-" + s.topic, topic=s.topic, member_id="x", generation_id_or_member_epoch=5),
        ("ILLEGAL_GENERATION",),
    ),
    "fetch offsets as nobody": Case(
        "OffsetFetch",
        9,
        lambda s: fetch_offsets(s.consumer, s.topic, member_id="x", member_epoch=1),
        ("UNKNOWN_MEMBER_ID",),
    ),
    "fetch offsets with a stale epoch": Case(
        "OffsetFetch",
        9,
        lambda s: fetch_offsets(s.consumer, s.topic, member_id=s.consumer_member, member_epoch=99),
        ("STALE_MEMBER_EPOCH",),
    ),
    "delete offsets in use": Case(
        "OffsetDelete", 0, lambda s: offset_delete(s.consumer, s.topic), ("GROUP_SUBSCRIBED_TO_TOPIC",)
    ),
    "delete offsets of no group": Case(
        "OffsetDelete", 0, lambda s: offset_delete("none", s.topic), ("GROUP_ID_NOT_FOUND",)
    ),
    "delete offsets without a group": Case(
        "OffsetDelete", 0, lambda s: offset_delete("", s.topic), ("INVALID_GROUP_ID",)
    ),
    # --- groups as a whole
    "describe no group": Case(
        "DescribeGroups", 6, lambda s: DescribeGroupsRequest(groups=("none",)), ("GROUP_ID_NOT_FOUND",)
    ),
    "describe no consumer group": Case(
        "ConsumerGroupDescribe", 1, lambda s: ConsumerGroupDescribeRequest(group_ids=("none",)), ("GROUP_ID_NOT_FOUND",)
    ),
    "describe a classic group as a consumer group": Case(
        "ConsumerGroupDescribe",
        1,
        lambda s: ConsumerGroupDescribeRequest(group_ids=(s.classic,)),
        ("GROUP_ID_NOT_FOUND",),
    ),
    "delete a live group": Case(
        "DeleteGroups", 2, lambda s: DeleteGroupsRequest(groups_names=(s.classic, s.consumer)), ("NON_EMPTY_GROUP",)
    ),
    "delete no group": Case(
        "DeleteGroups", 2, lambda s: DeleteGroupsRequest(groups_names=("none",)), ("GROUP_ID_NOT_FOUND",)
    ),
    "delete without a group": Case(
        "DeleteGroups", 2, lambda s: DeleteGroupsRequest(groups_names=("",)), ("GROUP_ID_NOT_FOUND",)
    ),
    "find a coordinator of another kind": Case(
        "FindCoordinator",
        4,
        lambda s: FindCoordinatorRequest(key_type=7, coordinator_keys=("x",)),
        ("INVALID_REQUEST",),
    ),
    "find a coordinator of a share with no share": Case(
        "FindCoordinator",
        6,
        lambda s: FindCoordinatorRequest(key_type=2, coordinator_keys=("no share key",)),
        ("INVALID_REQUEST",),
    ),
    # --- consumer members
    "a heartbeat without a group": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, group_id=""), ("INVALID_REQUEST",)
    ),
    "a heartbeat of nobody": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: beat(s, member_id="x"), ("UNKNOWN_MEMBER_ID",)
    ),
    "a heartbeat in no group": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: beat(s, group_id="none"), ("GROUP_ID_NOT_FOUND",)
    ),
    "a heartbeat of the future": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: beat(s, member_epoch=s.epoch + 9), ("FENCED_MEMBER_EPOCH",)
    ),
    "a heartbeat with an impossible epoch": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: beat(s, member_epoch=-3), ("INVALID_REQUEST",)
    ),
    "a leave of nobody": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: beat(s, member_id="x", member_epoch=-1), ("UNKNOWN_MEMBER_ID",)
    ),
    "a static leave without an instance": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: beat(s, member_epoch=-2), ("INVALID_REQUEST",)
    ),
    "a newcomer without a name": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, member_id=""), ("INVALID_REQUEST",)
    ),
    "a newcomer without patience": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, rebalance_timeout_ms=-1), ("INVALID_REQUEST",)
    ),
    "a newcomer without topics": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, subscribed_topic_names=None), ("INVALID_REQUEST",)
    ),
    "a newcomer that owns already": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, topic_partitions=None), ("INVALID_REQUEST",)
    ),
    "a newcomer with an assignor of its own": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, server_assignor="mine"), ("UNSUPPORTED_ASSIGNOR",)
    ),
    "a newcomer with an empty instance": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, instance_id=""), ("INVALID_REQUEST",)
    ),
    "a newcomer with an empty rack": Case(
        "ConsumerGroupHeartbeat", 1, lambda s: newcomer(s, rack_id=""), ("INVALID_REQUEST",)
    ),
    **{
        f"a newcomer with bad pattern {number}": Case(
            "ConsumerGroupHeartbeat",
            1,
            lambda s, pattern=pattern: newcomer(s, subscribed_topic_regex=pattern),
            ("INVALID_REGULAR_EXPRESSION",),
        )
        for number, pattern in enumerate(("(", "[", "*", "a{2,1}", r"\1", "(?<=a)b", "(?=a)"))
    },
    # --- transactions
    "a transaction without patience": Case(
        "InitProducerId",
        5,
        lambda s: InitProducerIdRequest(transactional_id=s.transactional_id, transaction_timeout_ms=0),
        ("INVALID_TRANSACTION_TIMEOUT",),
    ),
    "a transaction with too much patience": Case(
        "InitProducerId",
        5,
        lambda s: InitProducerIdRequest(transactional_id=s.transactional_id, transaction_timeout_ms=2**31 - 1),
        ("INVALID_TRANSACTION_TIMEOUT",),
    ),
    "a producer with an empty name": Case(
        "InitProducerId",
        5,
        lambda s: InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1_000),
        ("INVALID_REQUEST",),
    ),
    "a producer id without an epoch": Case(
        "InitProducerId",
        5,
        lambda s: InitProducerIdRequest(
            transactional_id=s.transactional_id, transaction_timeout_ms=1_000, producer_id=s.producer_id
        ),
        ("INVALID_REQUEST",),
    ),
    "a producer with another's id": Case(
        "InitProducerId",
        5,
        lambda s: InitProducerIdRequest(
            transactional_id=s.transactional_id,
            transaction_timeout_ms=1_000,
            producer_id=s.producer_id + 10_000,
            producer_epoch=0,
        ),
        ("PRODUCER_FENCED",),
    ),
    "partitions of a zombie": Case(
        "AddPartitionsToTxn",
        3,
        lambda s: add_partitions(s, v3_and_below_producer_epoch=s.producer_epoch - 1),
        ("PRODUCER_FENCED",),
    ),
    "partitions of a zombie, older": Case(
        "AddPartitionsToTxn",
        1,
        lambda s: add_partitions(s, v3_and_below_producer_epoch=s.producer_epoch - 1),
        ("INVALID_PRODUCER_EPOCH",),
    ),
    "partitions of another": Case(
        "AddPartitionsToTxn",
        3,
        lambda s: add_partitions(s, v3_and_below_producer_id=s.producer_id + 10_000),
        ("INVALID_PRODUCER_ID_MAPPING",),
    ),
    "partitions of nobody": Case(
        "AddPartitionsToTxn",
        3,
        lambda s: add_partitions(s, v3_and_below_transactional_id="none"),
        ("INVALID_PRODUCER_ID_MAPPING",),
    ),
    "partitions without a name": Case(
        "AddPartitionsToTxn", 3, lambda s: add_partitions(s, v3_and_below_transactional_id=""), ("INVALID_REQUEST",)
    ),
    "partitions that are not": Case(
        "AddPartitionsToTxn",
        3,
        lambda s: add_partitions(
            s,
            v3_and_below_topics=(
                AddPartitionsToTxnTopic(name="none", partitions=(0,)),
                AddPartitionsToTxnTopic(name=s.topic, partitions=(0,)),
            ),
        ),
        ("OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"),
    ),
    "offsets of a zombie": Case(
        "AddOffsetsToTxn",
        4,
        lambda s: of_producer(AddOffsetsToTxnRequest, s, group_id=s.classic, producer_epoch=s.producer_epoch - 1),
        ("PRODUCER_FENCED",),
    ),
    "offsets of nobody": Case(
        "AddOffsetsToTxn",
        4,
        lambda s: of_producer(AddOffsetsToTxnRequest, s, group_id=s.classic, transactional_id="none"),
        ("INVALID_PRODUCER_ID_MAPPING",),
    ),
    "an end of nothing": Case(
        "EndTxn", 4, lambda s: of_producer(EndTxnRequest, s, committed=True), ("INVALID_TXN_STATE",)
    ),
    "an end by a zombie": Case(
        "EndTxn",
        4,
        lambda s: of_producer(EndTxnRequest, s, committed=True, producer_epoch=s.producer_epoch - 1),
        ("PRODUCER_FENCED",),
    ),
    "an end by a zombie, newer": Case(
        "EndTxn",
        5,
        lambda s: of_producer(EndTxnRequest, s, committed=True, producer_epoch=s.producer_epoch - 1),
        ("PRODUCER_FENCED",),
    ),
    "an end by another": Case(
        "EndTxn",
        4,
        lambda s: of_producer(EndTxnRequest, s, producer_id=s.producer_id + 10_000),
        ("INVALID_PRODUCER_ID_MAPPING",),
    ),
    "an end by nobody": Case(
        "EndTxn", 4, lambda s: of_producer(EndTxnRequest, s, transactional_id="none"), ("INVALID_PRODUCER_ID_MAPPING",)
    ),
    "a marker for no topic": Case("WriteTxnMarkers", 1, lambda s: marker(s, "none"), ("UNKNOWN_TOPIC_OR_PARTITION",)),
    "offsets in a transaction that is not": Case("TxnOffsetCommit", 3, txn_commit, ("INVALID_TXN_STATE",)),
    "offsets in a transaction of a zombie": Case(
        "TxnOffsetCommit", 3, lambda s: txn_commit(s, producer_epoch=s.producer_epoch - 1), ("INVALID_PRODUCER_EPOCH",)
    ),
    "offsets in a transaction without a group": Case(
        "TxnOffsetCommit", 3, lambda s: txn_commit(s, group_id=""), ("INVALID_GROUP_ID",)
    ),
    **{
        f"a batch {name}, version {version}": Case(
            "Produce", version, lambda s, change=change: write(s, s.producer_epoch + change), (code,)
        )
        for version, name, change, code in (
            (10, "of a zombie", -1, "INVALID_PRODUCER_EPOCH"),
            (10, "of the future", 1, "INVALID_PRODUCER_EPOCH"),
            (10, "in no transaction", 0, "INVALID_TXN_STATE"),
            (11, "of a zombie", -1, "INVALID_PRODUCER_EPOCH"),
            (11, "of the future", 1, "INVALID_PRODUCER_EPOCH"),
            (11, "in no transaction", 0, "TRANSACTION_ABORTABLE"),
            (12, "of a zombie", -1, "INVALID_PRODUCER_EPOCH"),
            (12, "of the future", 1, "INVALID_PRODUCER_EPOCH"),
        )
    },
    "describe no transaction": Case(
        "DescribeTransactions",
        0,
        lambda s: DescribeTransactionsRequest(transactional_ids=("none",)),
        ("TRANSACTIONAL_ID_NOT_FOUND",),
    ),
    "describe a transaction without a name": Case(
        "DescribeTransactions", 0, lambda s: DescribeTransactionsRequest(transactional_ids=("",)), ("INVALID_REQUEST",)
    ),
    "list transactions by a pattern that is none": Case(
        "ListTransactions",
        2,
        lambda s: ListTransactionsRequest(transactional_id_pattern="("),
        ("INVALID_REGULAR_EXPRESSION",),
    ),
}

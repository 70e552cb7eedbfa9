"""`KafkaAdmin`, in the shape of kafka-python's KafkaAdminClient."""

from __future__ import annotations

import os
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Self, TypeVar
from uuid import UUID

from headrace.client.admin_values import (
    AclDescription,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    GroupDescription,
    GroupListing,
    HangingTransaction,
    LogDirDescription,
    NewPartitions,
    NewTopic,
    ProducerDescription,
    QuorumDescription,
    Reassignment,
    TopicDescription,
    TransactionDescription,
    TransactionListing,
)
from headrace.client.async_admin import AsyncKafkaAdmin
from headrace.client.fault import Closed
from headrace.client.loop_thread import LoopThread
from headrace.client.records import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

Result = TypeVar("Result")


class KafkaAdmin:
    """Administers a cluster: `AsyncKafkaAdmin` for programs without a loop. May be used by several threads.

    Every method raises what the broker refuses; of several things asked at once, the others are still done.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Options have kafka-python's names, in `config` and `config_file` Java's as well; docs/howto/clients.md."""
        self._admin = AsyncKafkaAdmin(config=config, config_file=config_file, **options)
        self._loop = LoopThread()
        self._finalizer = weakref.finalize(self, _end, self._admin, self._loop)
        try:
            self._run(self._admin.start())
        except BaseException:
            self.close()
            raise

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        if not self._finalizer.alive:
            work.close()
            raise Closed("The admin client is closed")
        return self._loop.run(work)

    # --- topics

    def create_topics(
        self, new_topics: Iterable[NewTopic | str], timeout_ms: int | None = None, validate_only: bool = False
    ) -> dict[str, UUID]:
        """Create topics; gives their ids."""
        return self._run(self._admin.create_topics(new_topics, timeout_ms, validate_only))

    def delete_topics(self, topics: Iterable[str], timeout_ms: int | None = None) -> None:
        """Delete topics, and their records with them."""
        self._run(self._admin.delete_topics(topics, timeout_ms))

    def list_topics(self) -> list[str]:
        """The names of all topics."""
        return self._run(self._admin.list_topics())

    def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicDescription]:
        """What there is to know about some topics, or about all."""
        return self._run(self._admin.describe_topics(topics))

    def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions | int],
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> None:
        """Give topics more partitions."""
        self._run(self._admin.create_partitions(topic_partitions, timeout_ms, validate_only))

    def list_offsets(
        self, specs: Mapping[Any, int | str], isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Offsets by partition: "earliest", "latest", "max_timestamp", or the first at or after a time in ms."""
        return self._run(self._admin.list_offsets(specs, isolation_level))

    def delete_records(
        self, records_to_delete: Mapping[Any, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete what lies before an offset, -1 for everything; gives where each partition begins now."""
        return self._run(self._admin.delete_records(records_to_delete, timeout_ms))

    def list_partition_reassignments(
        self, partitions: Iterable[Any] | None = None, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Which partitions are on their way to other brokers, of some or of all."""
        return self._run(self._admin.list_partition_reassignments(partitions, timeout_ms))

    def describe_cluster(self) -> ClusterDescription:
        """The cluster and its brokers."""
        return self._run(self._admin.describe_cluster())

    # --- settings

    def describe_configs(self, config_resources: Iterable[ConfigResource]) -> list[dict[str, ConfigEntry]]:
        """The settings of each resource by name, in the order of the resources."""
        return self._run(self._admin.describe_configs(config_resources))

    def alter_configs(self, config_resources: Iterable[ConfigResource], validate_only: bool = False) -> None:
        """Change the settings named and no others; None as a value takes one back to its default."""
        self._run(self._admin.alter_configs(config_resources, validate_only))

    # --- access

    def describe_acls(self) -> list[AclDescription]:
        """All access rules; KafkaError(SECURITY_DISABLED) or NotServed where a cluster knows none."""
        return self._run(self._admin.describe_acls())

    # --- groups

    def list_groups(self, states_filter: Iterable[str] = (), types_filter: Iterable[str] = ()) -> list[GroupListing]:
        """All groups, or those in some states or of some types."""
        return self._run(self._admin.list_groups(states_filter, types_filter))

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """Groups with their members, of the classic and of the new protocol."""
        return self._run(self._admin.describe_groups(group_ids))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups that have no members, and their offsets with them."""
        self._run(self._admin.delete_groups(group_ids))

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[Any] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, for some partitions or for all it has committed anything for."""
        return self._run(self._admin.list_group_offsets(group_id, partitions))

    def alter_group_offsets(self, group_id: str, offsets: Mapping[Any, int | OffsetAndMetadata]) -> None:
        """Set a group's offsets; it must have no members."""
        self._run(self._admin.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(self, group_id: str, partitions: Iterable[Any]) -> None:
        """Forget what a group has committed for some partitions, which none of its members may be subscribed to."""
        self._run(self._admin.delete_group_offsets(group_id, partitions))

    # kafka-python's older names for the same.
    list_consumer_groups = list_groups
    describe_consumer_groups = describe_groups
    delete_consumer_groups = delete_groups
    list_consumer_group_offsets = list_group_offsets

    # --- nodes

    def describe_log_dirs(self, brokers: Iterable[int] | None = None) -> dict[int, list[LogDirDescription]]:
        """The log directories of some brokers, or of all, with the replicas in them."""
        return self._run(self._admin.describe_log_dirs(brokers))

    def describe_metadata_quorum(self) -> QuorumDescription:
        """Who leads the controllers, who votes, who follows, and how far each has got."""
        return self._run(self._admin.describe_metadata_quorum())

    # --- transactions

    def list_transactions(
        self, states_filter: Iterable[str] = (), producer_ids_filter: Iterable[int] = ()
    ) -> list[TransactionListing]:
        """The transactional ids of every coordinator, or those in some states or of some producers."""
        return self._run(self._admin.list_transactions(states_filter, producer_ids_filter))

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """What a transactional id is at; KafkaError(TRANSACTIONAL_ID_NOT_FOUND) if there is none."""
        return self._run(self._admin.describe_transaction(transactional_id))

    def describe_producers(self, partitions: Iterable[Any]) -> dict[TopicPartition, list[ProducerDescription]]:
        """The producers that the leader of each partition remembers."""
        return self._run(self._admin.describe_producers(partitions))

    def find_hanging_transactions(
        self, partitions: Iterable[Any], *, now_ms: int, silent_ms: int
    ) -> list[HangingTransaction]:
        """Transactions open in these partitions whose producer was silent for so long and no coordinator knows."""
        return self._run(self._admin.find_hanging_transactions(partitions, now_ms=now_ms, silent_ms=silent_ms))

    def abort_transaction(self, hanging: HangingTransaction) -> None:
        """Write the marker that ends a hanging transaction in its partition."""
        self._run(self._admin.abort_transaction(hanging))

    def force_terminate_transaction(self, transactional_id: str) -> None:
        """Abort whatever a transactional id has open, by taking its place as a producer: its producer is fenced."""
        self._run(self._admin.force_terminate_transaction(transactional_id))

    # --- the end

    def close(self) -> None:
        """Hang up."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end(admin: AsyncKafkaAdmin, loop: LoopThread) -> None:
    loop.run(admin.close())
    loop.end()

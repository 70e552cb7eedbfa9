"""Which handler file serves which API, so that a start need not import them all.

Made by tools/generate_handler_index.py from what the files declare; do not edit by hand.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """What a handler file declares, but for its functions."""

    module: str
    key: int
    low: int
    high: int
    advertised_low: int | None = None
    raw: bool = False
    controller: bool = False
    refuses: bool = False


ENTRIES = (
    Entry("api00_produce", 0, 3, 13, advertised_low=0, raw=True),
    Entry("api01_fetch", 1, 4, 18, raw=True),
    Entry("api02_list_offsets", 2, 1, 11),
    Entry("api03_metadata", 3, 0, 13),
    Entry("api08_offset_commit", 8, 2, 10),
    Entry("api09_offset_fetch", 9, 1, 10),
    Entry("api10_find_coordinator", 10, 0, 6),
    Entry("api11_join_group", 11, 0, 9),
    Entry("api12_heartbeat", 12, 0, 4),
    Entry("api13_leave_group", 13, 0, 5),
    Entry("api14_sync_group", 14, 0, 5),
    Entry("api15_describe_groups", 15, 0, 6),
    Entry("api16_list_groups", 16, 0, 5),
    Entry("api18_api_versions", 18, 0, 4, controller=True),
    Entry("api19_create_topics", 19, 2, 7, controller=True, refuses=True),
    Entry("api20_delete_topics", 20, 1, 6, controller=True, refuses=True),
    Entry("api21_delete_records", 21, 0, 2),
    Entry("api22_init_producer_id", 22, 0, 5),
    Entry("api23_offset_for_leader_epoch", 23, 2, 4),
    Entry("api24_add_partitions_to_txn", 24, 0, 5),
    Entry("api25_add_offsets_to_txn", 25, 0, 4),
    Entry("api26_end_txn", 26, 0, 5),
    Entry("api27_write_txn_markers", 27, 1, 2),
    Entry("api28_txn_offset_commit", 28, 0, 5),
    Entry("api32_describe_configs", 32, 1, 4, controller=True),
    Entry("api33_alter_configs", 33, 0, 2, controller=True, refuses=True),
    Entry("api34_alter_replica_log_dirs", 34, 1, 2),
    Entry("api35_describe_log_dirs", 35, 1, 5),
    Entry("api37_create_partitions", 37, 0, 3, controller=True, refuses=True),
    Entry("api42_delete_groups", 42, 0, 2),
    Entry("api43_elect_leaders", 43, 0, 2, controller=True, refuses=True),
    Entry("api44_incremental_alter_configs", 44, 0, 1, controller=True, refuses=True),
    Entry("api45_alter_partition_reassignments", 45, 0, 1, controller=True, refuses=True),
    Entry("api46_list_partition_reassignments", 46, 0, 0, controller=True, refuses=True),
    Entry("api47_offset_delete", 47, 0, 0),
    Entry("api52_vote", 52, 0, 2, controller=True),
    Entry("api53_begin_quorum_epoch", 53, 0, 1, controller=True),
    Entry("api54_end_quorum_epoch", 54, 0, 1, controller=True),
    Entry("api55_describe_quorum", 55, 0, 2, controller=True),
    Entry("api56_alter_partition", 56, 2, 3, controller=True, refuses=True),
    Entry("api57_update_features", 57, 0, 2, controller=True, refuses=True),
    Entry("api58_envelope", 58, 0, 0, controller=True),
    Entry("api59_fetch_snapshot", 59, 0, 1, controller=True),
    Entry("api60_describe_cluster", 60, 0, 2, controller=True),
    Entry("api61_describe_producers", 61, 0, 0),
    Entry("api62_broker_registration", 62, 0, 4, controller=True, refuses=True),
    Entry("api63_broker_heartbeat", 63, 0, 2, controller=True, refuses=True),
    Entry("api64_unregister_broker", 64, 0, 0, controller=True, refuses=True),
    Entry("api65_describe_transactions", 65, 0, 0),
    Entry("api66_list_transactions", 66, 0, 2),
    Entry("api67_allocate_producer_ids", 67, 0, 0, controller=True, refuses=True),
    Entry("api68_consumer_group_heartbeat", 68, 0, 1),
    Entry("api69_consumer_group_describe", 69, 0, 1),
    Entry("api70_controller_registration", 70, 0, 0, controller=True, refuses=True),
    Entry("api73_assign_replicas_to_dirs", 73, 0, 0, controller=True, refuses=True),
    Entry("api74_list_config_resources", 74, 0, 1),
    Entry("api75_describe_topic_partitions", 75, 0, 0),
    Entry("api76_share_group_heartbeat", 76, 1, 1),
    Entry("api77_share_group_describe", 77, 1, 1),
    Entry("api78_share_fetch", 78, 1, 2),
    Entry("api79_share_acknowledge", 79, 1, 2),
    Entry("api80_add_raft_voter", 80, 0, 1, controller=True),
    Entry("api81_remove_raft_voter", 81, 0, 0, controller=True),
    Entry("api82_update_raft_voter", 82, 0, 0, controller=True),
    Entry("api83_initialize_share_group_state", 83, 0, 0),
    Entry("api84_read_share_group_state", 84, 0, 0),
    Entry("api85_write_share_group_state", 85, 0, 1),
    Entry("api86_delete_share_group_state", 86, 0, 0),
    Entry("api87_read_share_group_state_summary", 87, 0, 1),
    Entry("api88_streams_group_heartbeat", 88, 0, 0),
    Entry("api89_streams_group_describe", 89, 0, 0),
    Entry("api90_describe_share_group_offsets", 90, 0, 1),
    Entry("api91_alter_share_group_offsets", 91, 0, 0),
    Entry("api92_delete_share_group_offsets", 92, 0, 0),
)

"""The controller's mind: given the cluster's state and a command, which records would change it, and what to answer.

Every command reads `Metadata` and returns an `Outcome`; none changes anything.
The records take effect when they are replayed, and the reply is given when they have been committed.
What is known only from hearing of brokers, and is lost with the controller, is in `Liveness`.
Refusals are worded as Kafka words them, because scripts read them.

    19 CreateTopics     create_topics          56 AlterPartition            alter_partitions
    20 DeleteTopics     delete_topics          57 UpdateFeatures            update_features
    33, 44 AlterConfigs change_configs         62 BrokerRegistration        register_broker
    37 CreatePartitions create_partitions      63 BrokerHeartbeat           heartbeat
    43 ElectLeaders     elect_leaders          64 UnregisterBroker          unregister_broker
    45 Reassignments    alter_reassignments    67 AllocateProducerIds       allocate_producer_ids
    46 and their list   list_reassignments     70 ControllerRegistration    register_controller
                                               73 AssignReplicasToDirs      assign_replicas_to_dirs

By itself, from time to time: fence_stale_broker (at `Liveness.next_check_ms`), balance_leaders, elect_unclean_leaders,
snapshot_records.
"""

from headrace.cores.controller.brokers import Registration, register_broker, register_controller, unregister_broker
from headrace.cores.controller.configs import ConfigChange, change_configs
from headrace.cores.controller.directories import DirectoryAssignment, assign_replicas_to_dirs
from headrace.cores.controller.elections import (
    ElectionResult,
    ElectionType,
    balance_leaders,
    elect_leaders,
    elect_unclean_leaders,
)
from headrace.cores.controller.features import FeatureUpdate, ThisController, UpgradeType, update_features
from headrace.cores.controller.heartbeats import Heartbeat, HeartbeatReply, fence_stale_broker, heartbeat
from headrace.cores.controller.liveness import Liveness
from headrace.cores.controller.outcome import Command, Outcome
from headrace.cores.controller.partitions import MorePartitions, create_partitions
from headrace.cores.controller.placement import place_replicas
from headrace.cores.controller.policy import Policy
from headrace.cores.controller.producer_ids import PRODUCER_ID_BLOCK, allocate_producer_ids
from headrace.cores.controller.reassignment import (
    OngoingReassignment,
    Reassignment,
    ReassignmentResult,
    alter_reassignments,
    list_reassignments,
)
from headrace.cores.controller.replicas import AlteredPartition, IsrChange, alter_partitions
from headrace.cores.controller.snapshot import snapshot_records
from headrace.cores.controller.topics import (
    PARTITIONS_PER_REQUEST_MAX,
    CreatedTopic,
    Defaults,
    DeletedTopic,
    NewTopic,
    create_topics,
    delete_topics,
)

__all__ = (
    "PARTITIONS_PER_REQUEST_MAX",
    "PRODUCER_ID_BLOCK",
    "AlteredPartition",
    "Command",
    "ConfigChange",
    "CreatedTopic",
    "Defaults",
    "DeletedTopic",
    "DirectoryAssignment",
    "ElectionResult",
    "ElectionType",
    "FeatureUpdate",
    "Heartbeat",
    "HeartbeatReply",
    "IsrChange",
    "Liveness",
    "MorePartitions",
    "NewTopic",
    "OngoingReassignment",
    "Outcome",
    "Policy",
    "Reassignment",
    "ReassignmentResult",
    "Registration",
    "ThisController",
    "UpgradeType",
    "allocate_producer_ids",
    "alter_partitions",
    "alter_reassignments",
    "assign_replicas_to_dirs",
    "balance_leaders",
    "change_configs",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "elect_leaders",
    "elect_unclean_leaders",
    "fence_stale_broker",
    "heartbeat",
    "list_reassignments",
    "place_replicas",
    "register_broker",
    "register_controller",
    "snapshot_records",
    "unregister_broker",
    "update_features",
)

"""Requests about share groups and streams groups that must be refused, as rows of the same table as `group_cases`."""

from typing import Any

from headrace.wire.messages import share_acknowledge, share_fetch, streams_group_heartbeat
from headrace.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from headrace.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from headrace.wire.messages.share_group_describe import ShareGroupDescribeRequest
from headrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from headrace.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from hostile.group_cases import Case
from hostile.group_scene import Scene

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
"""What a share consumer calls itself: a UUID."""


def sharer(scene: Scene, **changed: Any) -> ShareGroupHeartbeatRequest:
    """A member that joins a share group, but for what is changed."""
    right = {"group_id": f"none-{scene.topic}", "member_id": MEMBER, "subscribed_topic_names": (scene.topic,)}
    return ShareGroupHeartbeatRequest(**{**right, **changed})


def share_request(kind: type, scene: Scene, epoch: int, **changed: Any) -> Any:
    """A fetch or an acknowledgement in a share session of this epoch, but for what is changed."""
    right = {"group_id": f"none-{scene.topic}", "member_id": MEMBER, "share_session_epoch": epoch}
    return kind(**{**right, **changed})


def stream(scene: Scene, **changed: Any) -> streams_group_heartbeat.StreamsGroupHeartbeatRequest:
    """A member that joins a streams group with one subtopology, but for what is changed."""
    right = {
        "group_id": f"none-{scene.topic}",
        "member_id": MEMBER,
        "rebalance_timeout_ms": 30_000,
        "topology": topology(scene),
        "active_tasks": (),
        "standby_tasks": (),
        "warmup_tasks": (),
        "process_id": "process",
    }
    return streams_group_heartbeat.StreamsGroupHeartbeatRequest(**{**right, **changed})


def topology(scene: Scene, **changed: Any) -> streams_group_heartbeat.Topology:
    """A topology that reads the scene's topic, but for what is changed in its only part."""
    right = {"subtopology_id": "0", "source_topics": (scene.topic,)}
    return streams_group_heartbeat.Topology(
        subtopologies=(streams_group_heartbeat.Subtopology(**{**right, **changed}),)
    )


SHARERS: dict[str, tuple[dict[str, Any], str]] = {
    "without a group": ({"group_id": ""}, "INVALID_REQUEST"),
    "without a name": ({"member_id": ""}, "INVALID_REQUEST"),
    "without topics": ({"subscribed_topic_names": None}, "INVALID_REQUEST"),
    "with an empty rack": ({"rack_id": ""}, "INVALID_REQUEST"),
    "with an impossible epoch": ({"member_epoch": -2}, "INVALID_REQUEST"),
    "of no group": ({"member_epoch": 1}, "GROUP_ID_NOT_FOUND"),
    "that leaves no group": ({"member_epoch": -1}, "GROUP_ID_NOT_FOUND"),
}

SESSIONS: dict[str, tuple[str, type, int, dict[str, Any], str]] = {
    "a fetch in no session": ("ShareFetch", share_fetch.ShareFetchRequest, 5, {}, "SHARE_SESSION_NOT_FOUND"),
    "a fetch that ends no session": ("ShareFetch", share_fetch.ShareFetchRequest, -1, {}, "SHARE_SESSION_NOT_FOUND"),
    "a fetch of nobody": ("ShareFetch", share_fetch.ShareFetchRequest, 0, {"member_id": None}, "INVALID_REQUEST"),
    "a fetch of no group": ("ShareFetch", share_fetch.ShareFetchRequest, 0, {"group_id": None}, "INVALID_REQUEST"),
    **{
        f"an acknowledgement {name}": (
            "ShareAcknowledge",
            share_acknowledge.ShareAcknowledgeRequest,
            epoch,
            changed,
            code,
        )
        for name, epoch, changed, code in (
            ("that opens a session", 0, {}, "INVALID_SHARE_SESSION_EPOCH"),
            ("in no session", 3, {}, "SHARE_SESSION_NOT_FOUND"),
            ("that ends no session", -1, {}, "SHARE_SESSION_NOT_FOUND"),
            ("of nobody", 1, {"member_id": None}, "INVALID_REQUEST"),
            ("of no group", 1, {"group_id": None}, "INVALID_REQUEST"),
        )
    },
}

STREAMS: dict[str, tuple[dict[str, Any], str]] = {
    "without a group": ({"group_id": ""}, "INVALID_REQUEST"),
    "without a name": ({"member_id": ""}, "INVALID_REQUEST"),
    "that is static": ({"instance_id": "x"}, "INVALID_REQUEST"),
    "with an empty rack": ({"rack_id": ""}, "INVALID_REQUEST"),
    "without patience": ({"rebalance_timeout_ms": -1}, "INVALID_REQUEST"),
    "without a topology": ({"topology": None}, "INVALID_REQUEST"),
    "that has tasks already": ({"active_tasks": None}, "INVALID_REQUEST"),
    "with an impossible epoch": ({"member_epoch": -3, "topology": None}, "INVALID_REQUEST"),
    "of no group": ({"member_epoch": 5, "topology": None}, "GROUP_ID_NOT_FOUND"),
}

TOPOLOGIES: dict[str, tuple[dict[str, Any], str]] = {
    "that reads by expression": ({"source_topic_regex": ("a.*",)}, "INVALID_REQUEST"),
    "that reads a topic which cannot be": ({"source_topics": ("no good!",)}, "STREAMS_INVALID_TOPOLOGY"),
    "whose changelog has a size": (
        {"state_changelog_topics": (streams_group_heartbeat.TopicInfo(name="c", partitions=5),)},
        "STREAMS_INVALID_TOPOLOGY",
    ),
}

NEWER_CASES: dict[str, Case] = {
    **{
        f"a share member {name}": Case(
            "ShareGroupHeartbeat", 1, lambda s, changed=changed: sharer(s, **changed), (code,)
        )
        for name, (changed, code) in SHARERS.items()
    },
    **{
        f"shares: {name}": Case(
            api, 1, lambda s, kind=kind, epoch=epoch, changed=changed: share_request(kind, s, epoch, **changed), (code,)
        )
        for name, (api, kind, epoch, changed, code) in SESSIONS.items()
    },
    "describe no share group": Case(
        "ShareGroupDescribe", 1, lambda _: ShareGroupDescribeRequest(group_ids=("none",)), ("GROUP_ID_NOT_FOUND",)
    ),
    "set offsets of no share group": Case(
        "AlterShareGroupOffsets", 0, lambda _: AlterShareGroupOffsetsRequest(group_id=""), ("INVALID_GROUP_ID",)
    ),
    "forget offsets of no share group": Case(
        "DeleteShareGroupOffsets", 0, lambda _: DeleteShareGroupOffsetsRequest(group_id="none"), ("GROUP_ID_NOT_FOUND",)
    ),
    **{
        f"a streams member {name}": Case(
            "StreamsGroupHeartbeat", 0, lambda s, changed=changed: stream(s, **changed), (code,)
        )
        for name, (changed, code) in STREAMS.items()
    },
    **{
        f"a topology {name}": Case(
            "StreamsGroupHeartbeat", 0, lambda s, changed=changed: stream(s, topology=topology(s, **changed)), (code,)
        )
        for name, (changed, code) in TOPOLOGIES.items()
    },
    "describe no streams group": Case(
        "StreamsGroupDescribe", 0, lambda _: StreamsGroupDescribeRequest(group_ids=("none",)), ("GROUP_ID_NOT_FOUND",)
    ),
}

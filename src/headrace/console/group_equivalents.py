"""What the pages about groups show and do, as commands, curl and Python."""

from __future__ import annotations

from headrace.client.offset_targets import Plan
from headrace.console.data_groups import Reset
from headrace.console.equivalents import Equivalent, Where, segment
from headrace.console.record_query import iso


def listing(where: Where) -> Equivalent:
    """All groups."""
    return Equivalent(
        cli=where.tool("kafka-consumer-groups", describe=True, all_groups=True, state=True),
        curl=where.curl(where.v3("/consumer-groups")),
        python=where.admin("for group in admin.list_groups():", "    print(group.group_id, group.state)"),
    )


def description(where: Where, group_id: str) -> Equivalent:
    """One group's offsets and lag."""
    return Equivalent(
        cli=where.tool("kafka-consumer-groups", describe=True, group=group_id),
        curl=where.curl(where.v3(f"/consumer-groups/{segment(group_id)}/lags")),
        python=where.admin(
            f"print(admin.describe_groups([{group_id!r}]))", f"print(admin.list_group_offsets({group_id!r}))"
        ),
    )


def deletion(where: Where, group_id: str) -> Equivalent:
    """The end of a group."""
    return Equivalent(
        cli=where.tool("kafka-consumer-groups", delete=True, group=group_id),
        curl=where.curl(where.v3(f"/consumer-groups/{segment(group_id)}"), method="DELETE"),
        python=where.admin(f"admin.delete_groups([{group_id!r}])"),
    )


def reset(where: Where, group_id: str, wanted: Reset, plan: Plan, *, execute: bool) -> Equivalent:
    """A reset of offsets, tried or done."""
    options: dict[str, object] = {"reset_offsets": True, "group": group_id}
    options |= {"topic": wanted.topic} if wanted.topic else {"all_topics": True}
    options |= _option(wanted)
    options |= {"execute": True} if execute else {"dry_run": True}
    body: dict[str, object] = {"scenario": _scenario(wanted)}
    if wanted.topic:
        body["topics"] = [{"topic_name": wanted.topic}]
    if execute:
        body["execute"] = True
    offsets = ", ".join(f"TopicPartition({topic!r}, {number}): {offset}" for (topic, number), offset in plan.items())
    return Equivalent(
        cli=where.tool("kafka-consumer-groups", **options),
        curl=where.curl(where.v3(f"/consumer-groups/{segment(group_id)}/offsets:reset"), body=body),
        python=where.admin(
            f"admin.alter_group_offsets({group_id!r}, {{{offsets}}})", imports="KafkaAdmin, TopicPartition"
        ),
    )


def _option(wanted: Reset) -> dict[str, object]:
    match wanted.to:
        case "latest":
            return {"to_latest": True}
        case "offset":
            return {"to_offset": wanted.offset}
        case "shift":
            return {"shift_by": wanted.shift}
        case "time":
            return {"to_datetime": iso(wanted.time_ms or 0)}
    return {"to_earliest": True}


def _scenario(wanted: Reset) -> dict[str, object]:
    match wanted.to:
        case "latest":
            return {"type": "to-latest"}
        case "offset":
            return {"type": "to-offset", "offset": wanted.offset}
        case "shift":
            return {"type": "shift-by", "records": wanted.shift}
        case "time":
            return {"type": "to-datetime", "timestamp": iso(wanted.time_ms or 0)}
    return {"type": "to-earliest"}

"""What the pages about topics show and do, as commands, curl and Python."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence

from headrace.console.equivalents import Equivalent, Where, segment
from headrace.console.record_lines import NewRecord
from headrace.console.record_query import iso

_NULL = "NULL"


def listing(where: Where) -> Equivalent:
    """All topics."""
    return Equivalent(
        cli=where.tool("kafka-topics", describe=True),
        curl=where.curl(where.v3("/topics")),
        python=where.admin("for topic in admin.describe_topics():", "    print(topic.name, len(topic.partitions))"),
    )


def creation(
    where: Where, name: str, *, partitions: int | None, replication: int | None, configs: Mapping[str, str]
) -> Equivalent:
    """A new topic; None leaves a number to the cluster."""
    named = name or "NAME"
    body: dict[str, object] = {"topic_name": named}
    arguments = [repr(named)]
    if partitions:
        body["partitions_count"] = partitions
        arguments.append(f"num_partitions={partitions}")
    if replication:
        body["replication_factor"] = replication
        arguments.append(f"replication_factor={replication}")
    if configs:
        body["configs"] = [{"name": key, "value": value} for key, value in configs.items()]
        arguments.append(f"topic_configs={dict(configs)!r}")
    return Equivalent(
        cli=where.tool(
            "kafka-topics",
            create=True,
            topic=named,
            partitions=partitions or None,
            replication_factor=replication or None,
            config=[f"{key}={value}" for key, value in configs.items()],
        ),
        curl=where.curl(where.v3("/topics"), body=body),
        python=where.admin(f"admin.create_topics([NewTopic({', '.join(arguments)})])", imports="KafkaAdmin, NewTopic"),
    )


def deletion(where: Where, name: str) -> Equivalent:
    """The end of a topic."""
    return Equivalent(
        cli=where.tool("kafka-topics", delete=True, topic=name),
        curl=where.curl(where.v3(f"/topics/{segment(name)}"), method="DELETE"),
        python=where.admin(f"admin.delete_topics([{name!r}])"),
    )


def description(where: Where, name: str) -> Equivalent:
    """A topic's partitions."""
    return Equivalent(
        cli=where.tool("kafka-topics", describe=True, topic=name),
        curl=where.curl(where.v3(f"/topics/{segment(name)}/partitions")),
        python=where.admin(f"print(admin.describe_topics([{name!r}]))"),
    )


def configs(where: Where, name: str) -> Equivalent:
    """A topic's settings."""
    return Equivalent(
        cli=where.tool("kafka-configs", describe=True, all=True, topic=name),
        curl=where.curl(where.v3(f"/topics/{segment(name)}/configs")),
        python=where.admin(
            f'print(admin.describe_configs([ConfigResource("topic", {name!r})]))', imports="ConfigResource, KafkaAdmin"
        ),
    )


def config_change(where: Where, name: str, setting: str, value: str | None) -> Equivalent:
    """One setting set, or taken back with None."""
    path = where.v3(f"/topics/{segment(name)}/configs/{segment(setting)}")
    change = {"delete_config": setting} if value is None else {"add_config": f"{setting}={_listed(value)}"}
    return Equivalent(
        cli=where.tool("kafka-configs", alter=True, topic=name, **change),
        curl=where.curl(path, method="DELETE")
        if value is None
        else where.curl(path, method="PUT", body={"value": value}),
        python=where.admin(
            f'admin.alter_configs([ConfigResource("topic", {name!r}, {{{setting!r}: {value!r}}})])',
            imports="ConfigResource, KafkaAdmin",
        ),
    )


def _listed(value: str) -> str:
    """A list's commas would end the value, unless it stands in brackets."""
    return f"[{value}]" if "," in value else value


def groups(where: Where, name: str) -> Equivalent:
    """Who reads a topic."""
    return Equivalent(
        cli=where.tool("kafka-consumer-groups", describe=True, all_groups=True),
        curl=where.curl(where.v3("/consumer-groups")),
        python=where.admin(
            "for group in admin.list_groups():",
            "    offsets = admin.list_group_offsets(group.group_id)",
            f"    print(group.group_id, [place for place in offsets if place.topic == {name!r}])",
        ),
    )


# --- records


def production(where: Where, topic: str, *new: NewRecord, left: int = 0) -> Equivalent:
    """Records sent, and how many are left out of what is said here."""
    more = f"  # and {left} more" if left else ""
    bodies = [json.dumps(_produced(one), ensure_ascii=False) for one in new]
    sends = "\n".join(f"    producer.send({', '.join(_arguments(topic, one))}).get()" for one in new)
    return Equivalent(
        cli=_typed(where, topic, new) + more,
        curl=where.curl(where.v3(f"/topics/{segment(topic)}/records"), body="\n".join(bodies)) + more,
        python=f'from headrace import KafkaProducer\n\nwith KafkaProducer(bootstrap_servers="{where.bootstrap}") as '
        f"producer:\n{sends}{more}",
    )


def _produced(one: NewRecord) -> dict[str, object]:
    """A record in the shape of REST v3."""
    body: dict[str, object] = {}
    if one.partition is not None:
        body["partition_id"] = one.partition
    if one.timestamp is not None:
        body["timestamp"] = iso(one.timestamp)
    if one.headers:
        body["headers"] = [{"name": name, "value": _base64(data)} for name, data in one.headers]
    body |= {} if one.key is None else {"key": _datum(one.key)}
    body |= {} if one.value is None else {"value": _datum(one.value)}
    return body


def _datum(data: bytes) -> dict[str, object]:
    try:
        return {"type": "STRING", "data": data.decode()}
    except UnicodeDecodeError:
        return {"type": "BINARY", "data": _base64(data)}


def _arguments(topic: str, one: NewRecord) -> list[str]:
    named = {
        "key": one.key,
        "partition": one.partition,
        "timestamp_ms": one.timestamp,
        "headers": one.headers or None,
    }
    return [
        repr(topic),
        f"value={one.value!r}",
        *(f"{name}={given!r}" for name, given in named.items() if given is not None),
    ]


def _typed(where: Where, topic: str, new: Sequence[NewRecord]) -> str:
    """Lines for kafka-console-producer, which asks for headers and keys in all of them or in none.

    It chooses partitions and times itself.
    """
    has_keys, has_headers = any(one.key is not None for one in new), any(one.headers for one in new)
    nothing = has_headers or any(one.value is None or (has_keys and one.key is None) for one in new)
    names = [_text(one.key) or "" for one in new]
    sign = next(one for one in (":", "|", "=", "::", "=>", "<key>") if not any(one in name for name in names))
    properties = ["parse.headers=true", "headers.delimiter=;"] if has_headers else []
    properties += ["parse.key=true", f"key.separator={sign}"] if has_keys else []
    properties += [f"null.marker={_NULL}"] if nothing else []
    lines = []
    for one in new:
        headers = ",".join(f"{name}:{_text(data) or ''}" for name, data in one.headers) or _NULL
        key, value = (_NULL if data is None else _text(data) or "" for data in (one.key, one.value))
        lines.append((f"{headers};" if has_headers else "") + (f"{key}{sign}" if has_keys else "") + value)
    say = shlex.join(["echo", *lines] if len(lines) == 1 else ["printf", "%s\\n", *lines])
    return f"{say} | {where.tool('kafka-console-producer', topic=topic, reader_property=properties)}"


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()

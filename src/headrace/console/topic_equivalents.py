"""What the pages about topics show and do, as commands, curl and Python."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from headrace.console.equivalents import Equivalent, Where, command, curl, segment
from headrace.console.record_lines import NewRecord
from headrace.console.record_query import RecordQuery, iso

_AS_TEXT = "Accept: application/vnd.kafka.text.v2+json"


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


def records(where: Where, query: RecordQuery) -> Equivalent:
    """A view of records."""
    options: dict[str, object] = {"bootstrap-server": where.bootstrap, "topic": query.topic}
    if query.partition is not None:
        options["partition"] = query.partition
    options |= _cli_start(query)
    if query.start != "live":
        options |= {"max-messages": query.limit, "exit-at-end": True}
    return Equivalent(
        cli=command("kafka-console-consumer", options=options),
        curl=_records_curl(where, query),
        python=_read(where, query),
    )


def _cli_start(query: RecordQuery) -> dict[str, object]:
    match query.start:
        case "last":
            return {"last": query.limit}
        case "beginning":
            return {"from-beginning": True}
        case "offset":
            return {"partition": query.partition or 0, "offset": query.offset}
        case "time" if query.time_ms is not None:
            return {"since": iso(query.time_ms)}
    return {}


def _records_curl(where: Where, query: RecordQuery) -> str:
    topic = segment(query.topic)
    if query.start in {"last", "offset"} and not query.filter:
        offset = query.offset if query.start == "offset" else -query.limit
        path = f"/topics/{topic}/partitions/{query.partition or 0}/records"
        # As text: a key that is no JSON would be refused otherwise.
        return curl(where.base, path, query={"offset": offset}, headers=[_AS_TEXT])
    since = {"live": "latest", "time": None if query.time_ms is None else iso(query.time_ms)}.get(
        query.start, "earliest"
    )
    return curl(
        where.base,
        f"/stream/{topic}",
        method="STREAM",
        query={
            "since": since,
            "partition": query.partition,
            "filter": query.filter,
            "max": None if query.start == "live" else query.limit,
        },
    )


def _read(where: Where, query: RecordQuery) -> str:
    opening = f'with KafkaConsumer({query.topic!r}, bootstrap_servers="{where.bootstrap}"'
    if query.start != "live":
        opening += ', auto_offset_reset="earliest"'
    place = f"TopicPartition({query.topic!r}, {query.partition or 0})"
    opening_assigned = f'with KafkaConsumer(bootstrap_servers="{where.bootstrap}") as consumer:'
    loop = "    for record in consumer:\n        print(record.partition, record.offset, record.key, record.value)"
    if query.start == "offset" or (query.partition is not None and query.start != "time"):
        seek = {"offset": f"seek(place, {query.offset})", "live": "seek_to_end(place)"}.get(
            query.start, "seek_to_beginning(place)"
        )
        return (
            f"from headrace import KafkaConsumer, TopicPartition\n\n{opening_assigned}\n    place = {place}\n"
            f"    consumer.assign([place])\n    consumer.{seek}\n{loop}"
        )
    return f"from headrace import KafkaConsumer\n\n{opening}) as consumer:\n{loop}"


def production(where: Where, topic: str, record: NewRecord) -> Equivalent:
    """One record sent."""
    key, value = _text(record.key), _text(record.value)
    body: dict[str, object] = {}
    if record.partition is not None:
        body["partition_id"] = record.partition
    if record.headers:
        body["headers"] = [{"name": name, "value": _base64(one)} for name, one in record.headers]
    body |= {} if key is None else {"key": {"type": "STRING", "data": key}}
    body |= {} if value is None else {"value": {"type": "STRING", "data": value}}
    sent = [repr(topic), f"value={record.value!r}"]
    sent += [] if record.key is None else [f"key={record.key!r}"]
    sent += [] if record.partition is None else [f"partition={record.partition}"]
    sent += [f"headers={record.headers!r}"] if record.headers else []
    line = f"{key}:{value or ''}" if key is not None else value or ""
    properties = ["parse.key=true", "key.separator=:"] if key is not None else []
    return Equivalent(
        cli=f"echo {command('', line) or repr('')} | "
        + where.tool("kafka-console-producer", topic=topic, reader_property=properties),
        curl=where.curl(where.v3(f"/topics/{segment(topic)}/records"), body=body),
        python=f'from headrace import KafkaProducer\n\nwith KafkaProducer(bootstrap_servers="{where.bootstrap}") as '
        f"producer:\n    producer.send({', '.join(sent)}).get()",
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()

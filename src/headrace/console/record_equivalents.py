"""A view of records elsewhere: the same records as a command, with curl, from Python.

The view filters, and sorts the records of all partitions by time. What a tool cannot do of that, a comment above it
says: a command that quietly does something else is worse than none. Comments have no quotes and no parentheses, because
some shells take them for the beginning of something.
"""

from __future__ import annotations

from headrace.console.equivalents import Equivalent, Where, command, curl, segment, url
from headrace.console.record_query import LIVE_BEFORE, RecordQuery, iso

_LINES = "Accept: application/x-ndjson"
_BY_TIME = "sort -t : -k 5,5n -k 3,3n -k 4,4n"
"""Lines of a stream by timestamp, partition and offset, which stand first; no name of a topic has a colon."""
_SILENCE_MS = 2000
"""When a program takes it that no more comes: transactions and compaction leave fewer records than offsets."""


def records(where: Where, query: RecordQuery, *, oldest_ms: int | None = None) -> Equivalent:
    """A view of records; `oldest_ms` is the time of the oldest of the newest, where it is known."""
    return Equivalent(
        cli=_noted(_cli_notes(query), _cli(where, query)),
        curl=_noted(_view_notes(query), _curl(where, query, oldest_ms)),
        python=_python(where, query, oldest_ms),
    )


def _noted(notes: list[str], text: str) -> str:
    return "\n".join([*(f"# {note}" for note in notes), text])


def _view_notes(query: RecordQuery) -> list[str]:
    if query.start == "live":
        return [f"The view begins with up to {LIVE_BEFORE} earlier records of each partition; this does not."]
    if query.start == "last" or query.partition is not None:
        return []
    return [f"Of several partitions, the first {query.limit} that come; the view sorts them by time."]


# --- the command


def _cli_notes(query: RecordQuery) -> list[str]:
    notes = []
    if query.filter.strip():
        notes.append("kafka-console-consumer has no filter: this prints what fits and what does not. curl has one.")
    if query.start == "offset" and query.partition is None:
        return [*notes, "It takes an offset for one partition only: this reads partition 0, the view reads all."]
    return notes + _view_notes(query)


def _cli(where: Where, query: RecordQuery) -> str:
    options: dict[str, object] = {
        "bootstrap-server": where.bootstrap,
        "topic": query.topic,
        "isolation-level": "read_committed",
        "partition": query.partition,
        **_cli_start(query),
    }
    if query.start != "live":
        options |= {"max-messages": query.limit, "exit-at-end": True}
    return command("kafka-console-consumer", options=options)


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


# --- the stream


def _stream(query: RecordQuery, oldest_ms: int | None) -> dict[str, object]:
    """What the Stream API is asked for."""
    is_first = query.start not in {"live", "last"}
    return {
        "since": _since(query, oldest_ms),
        "last_event_id": f"{query.topic}:{query.partition}={query.offset}" if _has_place(query) else None,
        "until": None if query.start == "live" else "latest",
        "partition": query.partition,
        "filter": _filter(query),
        "max": query.limit if is_first else None,
    }


def _has_place(query: RecordQuery) -> bool:
    return query.start == "offset" and query.partition is not None


def _since(query: RecordQuery, oldest_ms: int | None) -> str | None:
    match query.start:
        case "live":
            return "latest"
        case "last" if oldest_ms is not None:
            return iso(oldest_ms)
        case "time" if query.time_ms is not None:
            return iso(query.time_ms)
    return None if _has_place(query) else "earliest"


def _filter(query: RecordQuery) -> str:
    """The filter; an offset in all partitions is a part of it, because a position would have to name each of them."""
    chosen = query.filter.strip()
    if query.start != "offset" or query.partition is not None:
        return chosen
    return f"offset >= {query.offset}" + (f" and ({chosen})" if chosen else "")


def _curl(where: Where, query: RecordQuery, oldest_ms: int | None) -> str:
    path, asked = f"/stream/{segment(query.topic)}", _stream(query, oldest_ms)
    if query.start != "last":
        return curl(where.base, path, method="STREAM", query=asked)
    # A stream goes forward: the newest are the last of all, and sorted, because partitions come one after the other.
    lines = curl(where.base, path, method="STREAM", query=asked, headers=[_LINES], is_quiet=True)
    return f"{lines} | {_BY_TIME} | tail -n {query.limit}"


# --- the program


def _python(where: Where, query: RecordQuery, oldest_ms: int | None) -> str:
    if query.filter.strip():
        notes = ["KafkaConsumer has no filter; a stream of the gateway has.", *_view_notes(query)]
        return _noted(notes, _python_stream(where, query, oldest_ms))
    if query.start == "live":
        return _noted(_view_notes(query), _python_live(where, query))
    return _python_pages(where, query)


def _python_stream(where: Where, query: RecordQuery, oldest_ms: int | None) -> str:
    address = url(where.base, f"/stream/{segment(query.topic)}", _stream(query, oldest_ms))
    show = 'print(record["partition"], record["offset"], record["key"], record["value"])'
    lines = [
        "import json",
        "from urllib.request import Request, urlopen",
        "",
        f"address = {address!r}",
        'with urlopen(Request(address, headers={"Accept": "application/x-ndjson"})) as stream:',
        "    found = (json.loads(line) for line in stream if line.strip())",
        '    records = (one for one in found if "offset" in one)',
    ]
    if query.start == "last":
        lines.append(
            '    records = sorted(records, key=lambda one: (one["timestamp"], one["partition"], one["offset"]))'
        )
    rows = f"records[-{query.limit}:]" if query.start == "last" else "records"
    return "\n".join([*lines, f"    for record in {rows}:", f"        {show}"])


def _python_live(where: Where, query: RecordQuery) -> str:
    given = f'bootstrap_servers="{where.bootstrap}", isolation_level="read_committed"'
    loop = "    for record in consumer:\n        print(record.partition, record.offset, record.key, record.value)"
    if query.partition is None:
        return (
            f"from headrace import KafkaConsumer\n\nwith KafkaConsumer({query.topic!r}, {given}) as consumer:\n{loop}"
        )
    return (
        f"from headrace import KafkaConsumer, TopicPartition\n\nwith KafkaConsumer({given}) as consumer:\n"
        f"    consumer.assign([TopicPartition({query.topic!r}, {query.partition})])\n{loop}"
    )


def _python_pages(where: Where, query: RecordQuery) -> str:
    """As many of each partition as are wanted of all together, and of these the first or the last by time."""
    topic, limit = repr(query.topic), query.limit
    numbers = f"consumer.partitions_for_topic({topic})" if query.partition is None else f"[{query.partition}]"
    rows = f"records[-{limit}:]" if query.start == "last" else f"records[:{limit}]"
    return "\n".join(
        [
            "from headrace import KafkaConsumer, TopicPartition",
            "",
            "settings = {",
            f'    "bootstrap_servers": "{where.bootstrap}",',
            '    "isolation_level": "read_committed",',
            # With latest, the engine's late answer to where the end is may undo a seek, and nobody would notice.
            '    "auto_offset_reset": "earliest",',
            f'    "consumer_timeout_ms": {_SILENCE_MS},',
            "}",
            "records, left = [], {}",
            "with KafkaConsumer(**settings) as consumer:",
            f"    places = [TopicPartition({topic}, number) for number in {numbers}]",
            "    begins, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)",
            "    consumer.assign(places)",
            "    for place in places:",
            "        begin, end = begins[place], ends[place]",
            *(f"        {line}" for line in _python_start(query)),
            "        consumer.seek(place, start)",
            f"        left[place] = min(end - start, {limit})",
            "    while any(left.values()):",
            "        record = next(consumer, None)",
            "        if record is None:",
            "            break",
            "        if left[record.topic_partition]:",
            "            left[record.topic_partition] -= 1",
            "            records.append(record)",
            "records.sort(key=lambda one: (one.timestamp, one.partition, one.offset))",
            f"for record in {rows}:",
            "    print(record.partition, record.offset, record.key, record.value)",
        ]
    )


def _python_start(query: RecordQuery) -> list[str]:
    match query.start:
        case "last":
            return [f"start = max(begin, end - {query.limit})"]
        case "offset":
            return [f"start = min(max(begin, {query.offset}), end)"]
        case "time" if query.time_ms is not None:
            return [
                f"found = consumer.offsets_for_times({{place: {query.time_ms}}})[place]",
                "start = found.offset if found else end",
            ]
    return ["start = begin"]

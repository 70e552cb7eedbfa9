"""What the pages about transactions show and do, as commands, curl and Python."""

from __future__ import annotations

from headrace.console.equivalents import Equivalent, Where, command, segment

_NOW = "int(time.time() * 1000)"


def listing(where: Where) -> Equivalent:
    """All transactional ids."""
    return Equivalent(
        cli=_tool(where, "list"),
        curl=where.curl(where.v3("/transactions")),
        python=where.admin("print(admin.list_transactions())"),
    )


def description(where: Where, name: str) -> Equivalent:
    """One of them."""
    return Equivalent(
        cli=_tool(where, "describe", **{"transactional-id": name}),
        curl=where.curl(where.v3(f"/transactions/{segment(name)}")),
        python=where.admin(f"print(admin.describe_transaction({name!r}))"),
    )


def abortion(where: Where, name: str) -> Equivalent:
    """The end of what one of them has open."""
    return Equivalent(
        cli=_tool(where, "forceTerminateTransaction", transactionalId=name),
        curl=where.curl(where.v3(f"/transactions/{segment(name)}/abort"), method="POST"),
        python=where.admin(f"admin.force_terminate_transaction({name!r})"),
    )


def search(where: Where, minutes: float) -> Equivalent:
    """A search for what hangs; the command goes from broker to broker."""
    return Equivalent(
        cli=_tool(where, "find-hanging", **{"broker-id": 1, "max-transaction-timeout": round(minutes)}),
        curl=where.curl(where.v3("/transactions:hanging"), query={"silent_minutes": f"{minutes:g}"}),
        python="import time\n"
        + where.admin(
            "places = [(topic.name, one.partition) for topic in admin.describe_topics() for one in topic.partitions]",
            f"print(admin.find_hanging_transactions(places, now_ms={_NOW}, silent_ms={round(minutes * 60_000)}))",
        ),
    )


def abortion_of_hanging(where: Where, topic: str, partition: int, start: int | None) -> Equivalent:
    """The end of one that hangs."""
    return Equivalent(
        cli=_tool(where, "abort", **{"topic": topic, "partition": partition, "start-offset": start}),
        curl=where.curl(
            where.v3("/transactions:abort-hanging"),
            body={"topic_name": topic, "partition_id": partition, "start_offset": start},
        ),
        python="import time\n"
        + where.admin(
            f"found = admin.find_hanging_transactions([({topic!r}, {partition})], now_ms={_NOW}, silent_ms=0)",
            "for one in found:\n    admin.abort_transaction(one)",
        ),
    )


def _tool(where: Where, verb: str, **options: object) -> str:
    return f"{where.tool('kafka-transactions')} {command(verb, options=options)}"

"""The keys of a pipeline file as Markdown, for the page in docs/howto."""

from __future__ import annotations

from headrace.pipeline.keys import NAMED, TABLES, Key


def key_tables() -> str:
    """One table per kind of table, with every key."""
    parts = []
    for table, keys in TABLES.items():
        heading = f"### [{table}.NAME]" if table in NAMED else f"### [{table}]"
        rows = [f"| `{name}` | {key.kind.words} | {_default(key)} | {key.help} |" for name, key in keys.items()]
        parts.append("\n".join([heading, "", "| Key | Is | Default | For |", "|---|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _default(key: Key) -> str:
    return "**required**" if key.is_required else key.default

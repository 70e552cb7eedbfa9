"""Write docs/reference/settings.md from the tables of `headrace.settings`; a test regenerates and compares.

Run as: PYTHONPATH=src python tools/generate_settings_reference.py
"""

from collections.abc import Iterable
from pathlib import Path

from headrace.settings.catalog import THEMES
from headrace.settings.group import GROUP_SETTINGS
from headrace.settings.setting import Kind, Setting, format_bound
from headrace.settings.table import read_table
from headrace.settings.tables.legacy import LEGACY
from headrace.settings.topic import TOPIC_SETTINGS

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"

INTRODUCTION = """\
# Settings

Made by `tools/generate_settings_reference.py` from the tables in `src/headrace/settings`; do not edit by hand.

Names, types, bounds and defaults are those of Apache Kafka 4.3.1; where Headrace differs, the sentence says so.
A setting in **bold** is one Headrace acts on now; the others are known, checked and named in a warning at the start.

*Change* says how a broker setting can change while the node runs: for one broker, for the whole cluster, or only by
a restart (empty). What a topic or a group says for itself can always change.
"""


def render() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "## Topics\n", _following_table(TOPIC_SETTINGS.values())]
    parts += ["## Each group\n", _following_table(GROUP_SETTINGS.values())]
    for heading, rows in THEMES.items():
        parts += [f"## {heading}\n", _broker_table(read_table(rows, "broker").values())]
    parts += ["## Names Kafka has dropped\n", _legacy_table()]
    return "\n".join(parts)


def _following_table(settings: Iterable[Setting]) -> str:
    header = "| Setting | Type | Default | Follows | Meaning |\n|---|---|---|---|---|\n"
    return header + "".join(
        f"| {_name(one)} | {_kind(one)} | {_default(one)} | {_follows(one)} | {_cell(one.doc)} |\n" for one in settings
    )


def _broker_table(settings: Iterable[Setting]) -> str:
    header = "| Setting | Type | Default | Change | Meaning |\n|---|---|---|---|---|\n"
    return header + "".join(
        f"| {_name(one)} | {_kind(one)} | {_default(one)} | {one.mode.replace('read-only', '')} | {_cell(one.doc)} |\n"
        for one in settings
    )


def _legacy_table() -> str:
    return "| Setting | Use instead |\n|---|---|\n" + "".join(f"| `{name}` | {use} |\n" for name, use in LEGACY.items())


def _name(setting: Setting) -> str:
    return f"**`{setting.name}`**" if setting.served else f"`{setting.name}`"


def _kind(setting: Setting) -> str:
    words = setting.kind.name.lower()
    if setting.choices:
        words = f"{words} of" if setting.kind is Kind.LIST else ""
        words += " " + ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.low is not None or setting.high is not None:
        words += f" {format_bound(setting.low)}..{format_bound(setting.high)}"
    return words.strip() if setting.also is None else f"{words} or {setting.also}"


def _default(setting: Setting) -> str:
    if setting.required:
        return "required"
    text = setting.format(setting.default)
    return f"`{_breakable(text)}`" if text else ""


def _breakable(text: str) -> str:
    return text.replace(",", ", ")


def _follows(setting: Setting) -> str:
    return ", ".join(f"`{fallback.name}`" for fallback in setting.synonyms)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(render(), encoding="utf-8")
    print(f"wrote {TARGET.name}")

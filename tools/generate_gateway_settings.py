"""Write docs/reference/gateway-settings.md and config/gateway.properties from the gateway's table; a test compares.

Run as: PYTHONPATH=src python tools/generate_gateway_settings.py
"""

from pathlib import Path
from textwrap import fill

from headrace.settings.gateway import CLIENT_PREFIX, GATEWAY_SETTINGS
from headrace.settings.setting import Kind, Setting, format_bound

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "gateway-settings.md"
SAMPLE = ROOT / "config" / "gateway.properties"

INTRODUCTION = f"""\
# The gateway's settings

Made by `tools/generate_gateway_settings.py` from `src/headrace/settings/tables/gateway.py`; do not edit by hand.

They stand in a file, `headrace gateway --config gateway.properties`, or on the command line, `--set name=value`.
[config/gateway.properties](../../config/gateway.properties) has all of them, with their defaults.

`bootstrap.servers` names the cluster.
What stands behind `{CLIENT_PREFIX}` is a client's setting for the way there, as in `{CLIENT_PREFIX}security.protocol`.

| Setting | Type | Default | Meaning |
|---|---|---|---|
"""

HEADING = """\
# The gateway: REST, streams and the web console before a cluster, Headrace's or Apache Kafka's.
# Start it with: bin/headrace gateway --config config/gateway.properties
# The same as a page: docs/reference/gateway-settings.md. Made by tools/generate_gateway_settings.py.

# One or more brokers to ask first; the rest of the cluster is learned from them.
bootstrap.servers=localhost:9092

# How they are reached, where they ask for it: any setting of a client behind `client.`.
#client.security.protocol=PLAINTEXT
"""

SAID = frozenset({"listeners"})
"""What the sample says aloud, though it is the default."""


def page() -> str:
    """The reference page."""
    return INTRODUCTION + "".join(
        f"| `{one.name}` | {_kind(one)} | {_default(one)} | {one.doc.replace('|', chr(92) + '|')} |\n"
        for one in GATEWAY_SETTINGS.values()
    )


def sample() -> str:
    """The sample file."""
    return HEADING + "".join(
        f"\n{fill(one.doc, 118, initial_indent='# ', subsequent_indent='# ')}\n"
        f"{'' if one.name in SAID else '#'}{one.name}={one.format(one.default) or ''}\n"
        for one in GATEWAY_SETTINGS.values()
    )


def _kind(setting: Setting) -> str:
    words = setting.kind.name.lower()
    if setting.choices:
        words = f"{words} of" if setting.kind is Kind.LIST else ""
        words += " " + ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.low is not None or setting.high is not None:
        words += f" {format_bound(setting.low)}..{format_bound(setting.high)}"
    return words.strip()


def _default(setting: Setting) -> str:
    text = setting.format(setting.default)
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SAMPLE.write_text(sample(), encoding="utf-8")
    print(f"wrote {PAGE.name} and {SAMPLE.name}")

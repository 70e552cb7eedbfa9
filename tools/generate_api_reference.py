"""Write docs/reference/apis.md from the handlers' own headers; a test regenerates and compares.

Run as: PYTHONPATH=src python tools/generate_api_reference.py
"""

import inspect
from pathlib import Path

from headrace.broker.api import Api
from headrace.broker.dispatch import declared_apis
from headrace.wire.apis import APIS

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "apis.md"

INTRODUCTION = """\
# APIs

Made by `tools/generate_api_reference.py` from the headers of `src/headrace/broker/handlers`; do not edit by hand.

What is declared there is what ApiVersions advertises; nothing else is served.
"""


def render() -> str:
    """The whole page."""
    apis = sorted(declared_apis().values(), key=lambda api: api.key)
    rows = ["| Key | API | Versions | Controller listener |", "|--:|---|---|:-:|"]
    rows += [
        f"| {api.key} | [{APIS[api.key].name}](#{APIS[api.key].name.lower()}) | {api.low}-{api.high} | "
        f"{'only' if not api.on_brokers else 'yes' if api.controller else ''} |"
        for api in apis
    ]
    sections = [f"## {APIS[api.key].name}\n\n{_header(api)}\n" for api in apis]
    return "\n".join([INTRODUCTION, "\n".join(rows) + "\n", *sections])


def _header(api: Api) -> str:
    """The handler's docstring below its title, one list item per heading."""
    module = inspect.getmodule(api.handle)
    assert module is not None, "a handler lives in a module"
    lines = (inspect.getdoc(module) or "").splitlines()[2:]
    text = ""
    for line in lines:
        starts_item = line.partition(":")[0] in {"Versions", "Behaviour", "Deviations", "KIPs", "Limits"}
        text += ("\n- " if starts_item and text else "- " if starts_item else "\n  ") + line.strip()
    return text


if __name__ == "__main__":
    TARGET.write_text(render())

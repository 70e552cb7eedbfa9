"""Write src/headrace/broker/handler_index.py from what the handlers declare; a test regenerates and compares.

Run as: PYTHONPATH=src python tools/generate_handler_index.py
"""

from pathlib import Path

from headrace.broker.api import Api
from headrace.broker.dispatch import declared_apis

TARGET = Path(__file__).parent.parent / "src" / "headrace" / "broker" / "handler_index.py"

HEAD = '''\
"""Which handler file serves which API, so that a start need not import them all.

Made by tools/generate_handler_index.py from what the files declare; do not edit by hand.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """What a handler file declares, but for its functions."""

    module: str
    key: int
    low: int
    high: int
    advertised_low: int | None = None
    raw: bool = False
    controller: bool = False
    refuses: bool = False


ENTRIES = (
'''


def render() -> str:
    """The whole file."""
    rows = [_row(module, api) for module, api in sorted(declared_apis().items(), key=lambda found: found[1].key)]
    return HEAD + "".join(f"    {row},\n" for row in rows) + ")\n"


def _row(module: str, api: Api) -> str:
    words = [f'"{module}"', str(api.key), str(api.low), str(api.high)]
    if api.advertised_low is not None:
        words.append(f"advertised_low={api.advertised_low}")
    flags = {"raw": api.raw, "controller": api.controller, "refuses": api.refuse is not None}
    words += [f"{name}=True" for name, is_set in flags.items() if is_set]
    return f"Entry({', '.join(words)})"


if __name__ == "__main__":
    TARGET.write_text(render())

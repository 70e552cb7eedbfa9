"""The help of a tool: what it is for, its options in a table, and examples to copy."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

from headrace.cli.tool import COMMON_OPTIONS

if TYPE_CHECKING:
    from headrace.cli.tool import Option, Tool

_GAP = 2


def usage(tool: Tool, program: str) -> str:
    """The whole help."""
    rows = [
        (_left(option), _right(option))
        for option in (*sorted(tool.options, key=lambda option: option.name), *COMMON_OPTIONS)
        if not option.is_hidden
    ]
    width = max(len(left) for left, _ in rows)
    columns = max(shutil.get_terminal_size((100, 24)).columns, width + 40)
    lines = [f"{'Option':<{width}}  Description", f"{'------':<{width}}  -----------"]
    for left, right in rows:
        first, *rest = textwrap.wrap(right, columns - width - _GAP) or [""]
        lines.append(f"{left:<{width}}  {first}".rstrip())
        lines += [" " * (width + _GAP) + line for line in rest]
    if tool.examples:
        lines += ["", "Examples:"]
        for what, command in tool.examples:
            lines += [f"  # {what}", f"  {program} {command}"]
    return "\n".join(lines) + "\n"


def _left(option: Option) -> str:
    name = f"-{option.short}, --{option.name}" if option.short else f"--{option.name}"
    if not option.argument:
        return name
    shown = f"[{option.argument}]" if option.is_argument_optional else f"<{option.argument}>"
    return f"{name} {shown}"


def _right(option: Option) -> str:
    text = option.help
    if option.replaced_by:
        text = f"(DEPRECATED) Use --{option.replaced_by}. {text}"
    if option.default is not None and option.default != "":
        text += f" (default: {option.default})"
    return text

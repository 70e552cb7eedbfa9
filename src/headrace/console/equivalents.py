"""The same thing elsewhere: as a command, as curl, as Python. Pure, so that it can be tested by the word."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """One view or one action in three tongues; an empty one is not shown."""

    cli: str = ""
    curl: str = ""
    python: str = ""


def command(tool: str, *words: str, options: Mapping[str, object] | None = None) -> str:
    """A command line, quoted for a shell; an option of None or False is left out, True stands alone."""
    parts = [*tool.split(), *words]
    for name, value in (options or {}).items():
        for one in value if isinstance(value, list) else [value]:
            if one is None or one is False:
                continue
            parts.append(f"--{name}")
            if one is not True:
                parts.append(str(one))
    return shlex.join(parts)


def curl(
    base: str,
    path: str,
    *,
    method: str | None = None,
    query: Mapping[str, object] | None = None,
    body: Any = None,
    headers: Iterable[str] = (),
    is_quiet: bool = False,
) -> str:
    """A curl command; `body` goes as JSON, with POST unless a method is named; STREAM reads as it comes.

    A quiet one tells of errors and not of its progress, which it does where its output goes into a pipe.
    """
    parts = ["curl", "-sS"] if is_quiet else ["curl"]
    if method == "STREAM":
        parts.append("-N")
    elif method is not None:
        parts += ["-X", method]
    for header in [*(["Content-Type: application/json"] if body is not None else []), *headers]:
        parts += ["-H", header]
    if body is not None:
        parts += ["-d", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
    return shlex.join([*parts, url(base, path, query)])


def url(base: str, path: str, query: Mapping[str, object] | None = None) -> str:
    """An address with a query; what is None or empty is left out."""
    kept = {name: str(value) for name, value in (query or {}).items() if value not in {None, ""}}
    return f"{base}{path}" + (f"?{urlencode(kept, quote_via=quote)}" if kept else "")


def admin(bootstrap: str, *lines: str, imports: str = "KafkaAdmin") -> str:
    """Python that opens an admin client and does something with `admin`."""
    body = "\n".join(f"    {line}" for text in lines for line in text.split("\n"))
    return f'from headrace import {imports}\n\nwith KafkaAdmin(bootstrap_servers="{bootstrap}") as admin:\n{body}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What every command has to name."""

    bootstrap: str
    base: str
    """The gateway's address."""
    cluster_id: str

    def v3(self, path: str) -> str:
        """A path of REST v3."""
        return f"/v3/clusters/{self.cluster_id}{path}"

    def tool(self, name: str, **options: object) -> str:
        """A command of Kafka's tools; an underscore in an option's name stands for a dash."""
        dashed = {option.replace("_", "-"): value for option, value in options.items()}
        return command(name, options={"bootstrap-server": self.bootstrap, **dashed})

    def admin(self, *lines: str, imports: str = "KafkaAdmin") -> str:
        """Python with an admin client."""
        return admin(self.bootstrap, *lines, imports=imports)

    def curl(self, path: str, **given: Any) -> str:
        """A curl command to the gateway."""
        return curl(self.base, path, **given)


def segment(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")

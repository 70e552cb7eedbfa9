"""Parts that are installed the first time a command needs them, so that the core stays small."""

import importlib
import re
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from headrace.cli.bootstrap import Environment, SetupError, ensure_installed
from headrace.cli.layout import project_root

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def ensure_extra(*names: str, root: Path | None = None) -> None:
    """Make extras importable, or say in a SetupError how a person can: all that is missing at once.

    Installs only into an environment the launchers made; any other belongs to the person, who is told what to type.
    """
    root = root or project_root()
    environment = Environment(root=root, path=Path(sys.prefix)) if root else None
    if environment is not None and environment.stamps.is_dir():
        for name in names:
            if not environment.has(name):
                ensure_installed(environment, name)
                importlib.invalidate_caches()
        return
    missing = _missing(names, environment)
    if missing:
        lacks = " and ".join(f"the extra '{name}', of which {', '.join(found)}" for name, found in missing.items())
        raise SetupError(
            f"This command needs {lacks} is not installed.",
            f"Install it with: {sys.executable} -m pip install 'headrace[{','.join(missing)}]'",
        )


def has_extra(*names: str, root: Path | None = None) -> bool:
    """Whether extras are there already, so that nothing would have to be installed."""
    root = root or project_root()
    environment = Environment(root=root, path=Path(sys.prefix)) if root else None
    if environment is not None and environment.stamps.is_dir():
        return all(environment.has(name) for name in names)
    return not _missing(names, environment)


def _missing(names: Sequence[str], environment: Environment | None) -> dict[str, list[str]]:
    return {
        name: packages
        for name in names
        if (packages := [package for package in _packages(name, environment) if not _is_installed(package)])
    }


def _packages(name: str, environment: Environment | None) -> list[str]:
    """The distributions the extra consists of: from its lock in a project directory, from the metadata of a package."""
    if environment is not None:
        lines = environment.lock_file(name).read_text().splitlines()
        return [match[0] for line in lines if "==" in line and (match := _NAME.match(line))]
    marker = re.compile(rf"extra == ['\"]{re.escape(name)}['\"]")
    return [match[0] for line in requires("headrace") or () if marker.search(line) and (match := _NAME.match(line))]


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True

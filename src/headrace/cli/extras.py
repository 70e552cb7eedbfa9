"""Parts that are installed the first time a command needs them, so that the core stays small."""

import importlib
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from headrace.cli.bootstrap import Environment, SetupError, ensure_installed
from headrace.cli.layout import project_root

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def ensure_extra(name: str, *, root: Path | None = None) -> None:
    """Make the extra `name` importable, or say in a SetupError how a person can.

    Installs only into an environment the launchers made; any other belongs to the person, who is told what to type.
    """
    root = root or project_root()
    environment = Environment(root=root, path=Path(sys.prefix)) if root else None
    if environment is not None and environment.stamps.is_dir():
        if not environment.has(name):
            ensure_installed(environment, name)
            importlib.invalidate_caches()
        return
    missing = [package for package in _packages(name, environment) if not _is_installed(package)]
    if missing:
        raise SetupError(
            f"This command needs the extra '{name}', of which {', '.join(missing)} is not installed.",
            f"Install it with: {sys.executable} -m pip install 'headrace[{name}]'",
        )


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

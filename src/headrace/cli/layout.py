"""Where things lie: in a project directory, or in the installed package."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def project_root() -> Path | None:
    """The project directory Headrace runs from, or None if it was installed as a package."""
    root = _PACKAGE.parents[1]
    return root if (root / "requirements" / "core.lock").is_file() else None


def sample_config(name: str) -> Path:
    """A configuration file that comes with Headrace, such as server.properties."""
    root = project_root()
    return (root or _PACKAGE) / "config" / name


def log_directory() -> Path:
    """Where a detached server writes what it has to say: LOG_DIR, as Kafka's scripts have it, or logs/."""
    chosen = os.environ.get("LOG_DIR")
    return Path(chosen) if chosen else (project_root() or Path.cwd()) / "logs"

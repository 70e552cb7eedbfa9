"""Saved clusters, so that --bootstrap-server need not be typed every time.

A profile is a properties file: `bootstrap.servers`, and credentials where there are any. `headrace start` writes the
one named `default`, which counts until another one is chosen with `headrace profile use`; HEADRACE_BOOTSTRAP_SERVERS in
the environment comes before any profile.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from headrace.client.fault import ClientFault
from headrace.settings.fault import ConfigFault
from headrace.settings.properties import load_properties, write_properties

DEFAULT = "default"
_CURRENT = "current"
"""The file that holds the name of the chosen profile; no profile's own file has a name without a suffix."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")


def directory() -> Path:
    """Where profiles are kept: HEADRACE_HOME, or the user's configuration directory."""
    home = os.environ.get("HEADRACE_HOME")
    if home:
        return Path(home) / "profiles"
    base = os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA")
    return (Path(base) if base else Path.home() / ".config") / "headrace" / "profiles"


def profile_path(name: str) -> Path:
    """The file of a profile."""
    if not _NAME.match(name):
        raise ClientFault(f"'{name}' cannot be a profile's name", "Use letters, digits, dots, dashes, underscores.")
    return directory() / f"{name}.properties"


def load_profile(name: str | None) -> dict[str, str]:
    """The settings of a profile; without a name those of the environment, of the default profile, or nothing."""
    if name is None:
        address = os.environ.get("HEADRACE_BOOTSTRAP_SERVERS")
        if address:
            return {"bootstrap.servers": address}
        path = profile_path(current())
        return load_properties(path) if path.is_file() else {}
    path = profile_path(name)
    if not path.is_file():
        known = ", ".join(profiles()) or "none yet"
        raise ClientFault(f"There is no profile '{name}'", f"Known are: {known}.")
    return load_properties(path)


def current() -> str:
    """The profile that counts when none is named: HEADRACE_PROFILE, the one chosen with `use`, or `default`."""
    chosen = os.environ.get("HEADRACE_PROFILE")
    if chosen:
        return chosen
    try:
        return (directory() / _CURRENT).read_text().strip() or DEFAULT
    except OSError:
        return DEFAULT


def use_profile(name: str) -> None:
    """Choose the profile that counts from now on."""
    load_profile(name)
    (directory() / _CURRENT).write_text(f"{name}\n")


def save_profile(name: str, properties: dict[str, str]) -> Path:
    """Write a profile, readable for its owner only, as it may hold credentials."""
    path = profile_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.touch(mode=0o600)
    write_properties(temporary, properties, comment="A cluster that Headrace's tools talk to when none is named.")
    temporary.replace(path)
    return path


def forget_profile(name: str, *, only_for: str = "") -> None:
    """Remove a profile; with `only_for` only if it still names that cluster."""
    path = profile_path(name)
    try:
        if only_for and load_properties(path).get("bootstrap.servers") != only_for:
            return
    except ConfigFault:
        return
    path.unlink(missing_ok=True)


def profiles() -> list[str]:
    """The names of all profiles."""
    place = directory()
    return sorted(path.stem for path in place.glob("*.properties")) if place.is_dir() else []

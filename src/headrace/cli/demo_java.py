"""Java for the demo: found, or installed where that is allowed and there is a way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from headrace.cli.progress import Progress
from headrace.cli.setup_error import SetupError

_PACKAGE = "default-jre-headless"
"""Debian's newest Java; Spark needs 17 or later, which every supported Debian and Ubuntu has."""
_LAST_LINES = 5


def ensure_java() -> None:
    """Make sure there is a Java that Spark runs on; NoJava says what to install where we may not."""
    from headrace.spark.java import NoJava, find_java

    try:
        find_java()
    except NoJava:
        if not _may_install():
            raise
        _install()
        find_java()


def _may_install() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install() -> None:
    """As root on Debian: the lists of packages may be missing or old, so they are fetched first."""
    with Progress() as progress:
        for step, words in (("update", "asking for Debian's packages"), ("install", f"installing {_PACKAGE}")):
            progress.say(words)
            command = ["apt-get", "-qq", "-y", step, *([_PACKAGE] if step == "install" else [])]
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )
            if done.returncode != 0 and step == "install":
                said = " ".join(done.stderr.split("\n")[-_LAST_LINES:]).strip()
                raise SetupError(
                    f"Java could not be installed: {said or 'apt-get failed without a word'}.",
                    f"Install it with: apt-get install {_PACKAGE}",
                )

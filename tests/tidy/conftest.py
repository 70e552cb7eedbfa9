"""The repository as the tidy tests see it, and the reports they leave at the end of a run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_NOT_OURS = {"__pycache__", "build", "dist", "data", "logs"}
_REPORTS = pytest.StashKey[dict[str, list[str]]]()


class Repository:
    """The project's own files."""

    root = ROOT

    def files(self, *suffixes: str, under: str = ".") -> Iterator[Path]:
        """Every file with one of the suffixes (all, if none is named), environments and caches aside."""
        for directory, names, files in os.walk(ROOT / under):
            names[:] = [name for name in names if name not in _NOT_OURS and (name == ".ci" or name[0] != ".")]
            for file in files:
                path = Path(directory, file)
                if not suffixes or path.suffix in suffixes:
                    yield path

    def name(self, path: Path) -> str:
        """The path as a person writes it."""
        return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def repository():
    """The project's own files."""
    return Repository()


@pytest.fixture
def report(request):
    """Lines for a person to judge, printed under a title when the run ends."""

    def add(title: str, lines: list[str]) -> None:
        request.config.stash.setdefault(_REPORTS, {})[title] = lines

    return add


def pytest_terminal_summary(terminalreporter, config):
    """Print what the tidy tests found worth a look."""
    for title, lines in config.stash.get(_REPORTS, {}).items():
        terminalreporter.section(title, sep="-")
        for line in lines:
            terminalreporter.line(line)

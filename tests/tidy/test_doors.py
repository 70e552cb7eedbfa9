"""Every tool has its doors: two launchers in bin/, one for Windows, and a script in the package, all of one form."""

import importlib.util
import os
import re
import tomllib

import pytest
from tools.generate_launchers import OURS, launchers, with_scripts

from headrace.cli.main import ALIASES, COMMANDS, HELP, TOOLS


@pytest.mark.parametrize("name", launchers())
def test_launchers_are_as_generated(repository, name):
    """Is a launcher exactly what tools/generate_launchers.py writes, and executable where the system asks for it?"""
    path = repository.root / "bin" / name

    assert path.read_bytes() == launchers()[name].encode()
    assert name.endswith(".bat") or os.access(path, os.X_OK)


def test_no_launcher_without_a_tool(repository):
    """Does every launcher in bin/ lead to a tool that exists?"""
    places = (repository.root / "bin", repository.root / "bin/windows")
    found = {
        path.relative_to(repository.root / "bin").as_posix()
        for place in places
        for path in place.iterdir()
        if path.is_file() and path.name not in OURS
    }

    assert found == set(launchers())


def test_every_tool_has_all_its_launchers():
    """Has a tool its name with .sh and without and its twin for Windows, and a misspelt name its launcher?"""
    wanted = {name for tool in TOOLS for name in (tool, f"{tool}.sh", f"windows/{tool}.bat")}

    assert set(launchers()) == wanted | {f"{alias}.sh" for alias in ALIASES}
    assert set(ALIASES.values()) <= set(TOOLS)


def test_windows_line_ends():
    """Do the launchers for Windows have the line ends it needs, and the others none of them?"""
    for name, text in launchers().items():
        assert text.count("\r\n") == (text.count("\n") if name.endswith(".bat") else 0)


def test_what_is_typed_on_windows_arrives_as_typed(repository):
    """Do arguments never follow a `call` there, which would take `%t %` in a format for the name of a variable?"""
    files = sorted((repository.root / "bin/windows").glob("*.bat"))
    texts = {path.name: path.read_text() for path in files}
    calls = [line for text in texts.values() for line in text.splitlines() if line.startswith("call ")]

    assert [name for name, text in texts.items() if text.count("%*") != 1] == ["environment.bat"]
    assert {*calls} == {'call "%~dp0environment.bat" "%ROOT%"'}
    assert all("\r\n" in path.read_bytes().decode() for path in files)


@pytest.mark.parametrize("module", sorted({*TOOLS.values(), *COMMANDS.values()}))
def test_every_door_leads_somewhere(module):
    """Is there a module behind every name of a tool or a command?"""
    assert importlib.util.find_spec(module) is not None


def test_package_scripts(repository):
    """Does `pip install` give the same commands as bin/?"""
    text = (repository.root / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]

    assert with_scripts(text) == text
    assert set(project["scripts"]) == {"headrace", *TOOLS}
    assert set(project["scripts"].values()) == {"headrace.cli.main:main"}


def test_package_needs_what_the_locks_hold(repository):
    """Do the package's dependencies and extras name the same packages as requirements/*.in?"""
    project = tomllib.loads((repository.root / "pyproject.toml").read_text())["project"]
    declared = {"core": project["dependencies"], **project["optional-dependencies"]}

    def names(lines: list[str]) -> set[str]:
        return {match[0] for line in lines if (match := re.match(r"[a-z0-9-]+", line))}

    for name, lines in declared.items():
        listed = (repository.root / f"requirements/{name}.in").read_text().splitlines()

        # An extra that needs another names it through the package itself.
        assert names(lines) - {"headrace"} == names([line for line in listed if not line.startswith(("#", "-"))])


def test_help_names_every_command():
    """Does `headrace help` name every command of its own?"""
    named = set(re.findall(r"headrace ([\w-]+)", HELP))

    assert named == {name for name in COMMANDS if not name.startswith("-")}

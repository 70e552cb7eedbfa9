"""Every tool has its doors: two launchers in bin/, one for Windows, and a script in the package, all of one form."""

import os
import re
import tomllib

import pytest

from headrace.cli.main import COMMANDS, HELP, TOOLS

SHELL = """\
#!/bin/sh
# Kafka's name for this tool: bin/headrace sets itself up and runs it.
self=$(readlink -f -- "$0")
HEADRACE_INVOKED_AS=$0
export HEADRACE_INVOKED_AS
exec "${{self%/*}}/headrace" {tool} "$@"
"""

WINDOWS = """\
@echo off
rem Kafka's name for this tool: headrace.bat sets itself up and runs it.
setlocal
set "HEADRACE_INVOKED_AS=%~f0"
call "%~dp0headrace.bat" {tool} %*
exit /b %ERRORLEVEL%
"""


@pytest.mark.parametrize("tool", TOOLS)
def test_launchers_have_one_form(repository, tool):
    """Are a tool's launchers, with .sh and without, exactly the form that all share, and executable?"""
    for name in (tool, f"{tool}.sh"):
        path = repository.root / "bin" / name

        assert path.read_text() == SHELL.format(tool=tool)
        assert os.access(path, os.X_OK)


@pytest.mark.parametrize("tool", TOOLS)
def test_windows_twin(repository, tool):
    """Does a tool have its .bat twin, in the form that all share, with the line ends Windows needs?"""
    raw = (repository.root / "bin/windows" / f"{tool}.bat").read_bytes().decode()

    assert raw.replace("\r\n", "\n") == WINDOWS.format(tool=tool)
    assert raw.count("\r\n") == raw.count("\n")


def test_no_launcher_without_a_tool(repository):
    """Does every launcher in bin/ lead to a tool that exists?"""
    ours = {"headrace", "test", "environment.sh"}
    shell = {path.name.removesuffix(".sh") for path in (repository.root / "bin").iterdir() if path.is_file()}
    windows = {path.stem for path in (repository.root / "bin/windows").iterdir()}

    assert shell - {name.removesuffix(".sh") for name in ours} == set(TOOLS)
    assert windows - {"headrace"} == set(TOOLS)


def test_package_scripts(repository):
    """Does `pip install` give the same commands as bin/?"""
    project = tomllib.loads((repository.root / "pyproject.toml").read_text())["project"]

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

        assert names(lines) == names([line for line in listed if not line.startswith(("#", "-"))])


def test_help_names_every_command():
    """Does `headrace help` name every command of its own?"""
    named = set(re.findall(r"headrace (\w+)", HELP))

    assert named == {name for name in COMMANDS if not name.startswith("-")}

"""The umbrella command and its dispatch."""

import sys
from types import ModuleType

import pytest

from headrace.cli import main as umbrella
from headrace.cli.bootstrap import SetupError


@pytest.fixture
def call(monkeypatch, capsys):
    """Call the umbrella as if typed; returns exit code, stdout and stderr."""

    def call(*words: str, invoked_as: str | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", list(words))
        if invoked_as:
            monkeypatch.setenv("HEADRACE_INVOKED_AS", invoked_as)
        code = umbrella.main()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def tool(monkeypatch):
    """A tool that notes how it was called, in the place of kafka-storage."""
    module = ModuleType("noted")
    module.calls = []
    module.main = lambda arguments, program: module.calls.append((list(arguments), program)) or 7
    monkeypatch.setitem(sys.modules, "noted", module)
    monkeypatch.setitem(umbrella.TOOLS, "kafka-storage", "noted")
    return module


@pytest.mark.parametrize("words", [["headrace"], ["headrace", "help"], ["headrace", "--help"], ["headrace", "-h"]])
def test_help(call, words):
    """Is asking for help answered on stdout, with success, in every way people ask?"""
    code, out, err = call(*words)

    assert (code, err) == (0, "")
    assert "headrace start" in out
    assert "kafka-storage" in out


def test_unknown_command(call):
    """Is a command that is not there refused by name, with a way to find the right one?"""
    assert call("headrace", "brew") == (
        1,
        "",
        "headrace: there is no command 'brew'.\n`headrace help` lists the commands.\n",
    )


def test_misspelt_command(call):
    """Is the command that was probably meant named?"""
    assert call("headrace", "topcis")[2].splitlines()[0] == (
        "headrace: there is no command 'topcis'. Did you mean 'topics'?"
    )


@pytest.mark.parametrize("words", [["headrace", "version"], ["headrace", "--version"]])
def test_version(call, words):
    """Do both ways of asking for the version answer in one line?"""
    code, out, _ = call(*words)

    assert (code, out.count("\n"), out.startswith("Headrace ")) == (0, 1, True)


def test_tool_by_launcher(call, tool):
    """Does a launcher's tool learn the path it was called by, and does the tool's exit code come back?"""
    code, _, _ = call("main.py", "kafka-storage", "info", invoked_as="bin/kafka-storage.sh")

    assert (code, tool.calls) == (7, [(["info"], "bin/kafka-storage.sh")])


@pytest.mark.parametrize("script", ["env/bin/kafka-storage", "env\\Scripts\\kafka-storage.exe"])
def test_tool_by_installed_script(call, tool, script):
    """Does a script that pip installed reach the tool of its name?"""
    if "\\" in script and sys.platform != "win32":
        script = script.replace("\\", "/")
    code, _, _ = call(script, "random-uuid")

    assert (code, tool.calls) == (7, [(["random-uuid"], script)])


def test_tool_that_lacks_something(call, tool):
    """Does a tool that cannot be set up end in two sentences and exit code 1, without a traceback?"""

    def lacking(arguments: list[str], program: str) -> int:
        raise SetupError("It lacks a part.", "Fetch it.")

    tool.main = lacking

    assert call("headrace", "kafka-storage") == (1, "", "It lacks a part.\nFetch it.\n")

"""The help of a tool."""

import contextlib
import importlib

import pytest

from headrace import __version__
from headrace.cli.get_offsets import TOOL
from headrace.cli.main import TOOLS
from headrace.cli.usage import usage


def test_help_has_every_option_and_examples():
    """Does the help show each option that is not hidden, and commands to copy?"""
    text = usage(TOOL, "bin/kafka-get-offsets.sh")
    for option in TOOL.options:
        assert (f"--{option.name}" in text) is not option.is_hidden
    assert "  bin/kafka-get-offsets.sh --bootstrap-server localhost:9092" in text
    assert "--output <text|json|yaml>" in text


@pytest.mark.parametrize("name", [name for name in TOOLS if not name.startswith("zookeeper")])
def test_every_tool_has_examples_and_results_for_programs(name, capsys):
    """Does the help of every tool, whatever reads its options, show commands to copy and how programs read it?"""
    with contextlib.suppress(SystemExit):
        importlib.import_module(TOOLS[name]).main(["--help"], name)
    shown = "".join(capsys.readouterr())

    assert "Examples:\n" in shown
    assert "--output" in shown


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if not tool.startswith("zookeeper")])
def test_every_tool_says_its_version(tool, capsys):
    """Does every tool that Kafka 4 has answer --version with Kafka's number and ours, on standard output?"""
    try:
        code = importlib.import_module(TOOLS[tool]).main(["--version"], tool)
    except SystemExit as end:
        code = end.code

    assert (0, f"4.3.1 (Headrace {__version__})\n") == (code, capsys.readouterr().out)

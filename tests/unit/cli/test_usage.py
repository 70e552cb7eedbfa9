"""The help of a tool."""

from headrace.cli.get_offsets import TOOL
from headrace.cli.usage import usage


def test_help_has_every_option_and_examples():
    """Does the help show each option that is not hidden, and commands to copy?"""
    text = usage(TOOL, "bin/kafka-get-offsets.sh")
    for option in TOOL.options:
        assert (f"--{option.name}" in text) is not option.is_hidden
    assert "  bin/kafka-get-offsets.sh --bootstrap-server localhost:9092" in text
    assert "--output <text|json|yaml>" in text

"""Names of options that Kafka has dropped or replaced."""

import pytest

from headrace.cli import console_producer, log_dirs
from headrace.cli.old_names import BROKER_LIST, adopt
from headrace.cli.tool import BOOTSTRAP, GoneOption, Option, Tool, UsageError, read_options

TOOL = Tool(
    name="tool",
    summary="",
    options=(
        BOOTSTRAP,
        BROKER_LIST,
        Option(name="new", argument="x", is_repeatable=True, help=""),
        Option(
            name="old", argument="x", is_repeatable=True, replaced_by="new", warning="Old!", conflict="Both!", help=""
        ),
        Option(name="one", argument="x", help=""),
        Option(name="former", argument="x", replaced_by="one", help=""),
    ),
)


def test_dropped_names_are_read_as_their_new_ones(capsys):
    """Does a dropped name stand for the new one, with a line on the error stream that says so?"""
    values = read_options(TOOL, ["--broker-list", "a:1"])
    adopt(values, {"broker-list": "bootstrap-server"})

    assert values.get("bootstrap-server") == "a:1"
    assert capsys.readouterr() == ("", "--broker-list is called --bootstrap-server now.\n")


def test_the_new_name_wins():
    """Is what was typed under the new name kept?"""
    values = read_options(TOOL, ["--broker-list", "a:1", "--bootstrap-server", "b:2"])
    adopt(values, {"broker-list": "bootstrap-server"})

    assert values.get("bootstrap-server") == "b:2"


def test_a_tool_may_word_its_warning():
    """Is a tool's own wording used, once however often the name is typed, and Kafka's usual one elsewhere?"""
    values = read_options(TOOL, ["--old", "1", "--old", "2", "--former", "3"])

    assert values.all("new") == ["1", "2"]
    assert values.warnings == [
        "Old!",
        "Warning: --former is deprecated and will be removed in a future version. Use --one instead.",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--old", "1", "--new", "2"], "Both!"),
        (["--one", "1", "--former", "2"], 'Option "[one]" can\'t be used with option "[former]"'),
        (["--one", "1", "--one", "2"], "Found multiple arguments for option one, but you asked for only one"),
    ],
)
def test_names_that_exclude_each_other(arguments, expected):
    """Are the old and the new name together refused, in the tool's own words where it has some?"""
    with pytest.raises(UsageError) as caught:
        read_options(TOOL, arguments)

    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("module", "typed", "instead"),
    [
        (
            log_dirs,
            ["--describe", "--zookeeper", "zoo:2181", "--topic-list", "a b"],
            (
                "--zookeeper is no option of Kafka 4. "
                "Type: bin/tool.sh --describe --bootstrap-server localhost:9092 --topic-list 'a b'\n"
            ),
        ),
        (
            console_producer,
            ["-zookeeper=zoo:2181", "--topic", "a"],
            "--zookeeper is no option of Kafka 4. Type: bin/tool.sh --bootstrap-server localhost:9092 --topic a\n",
        ),
        (
            log_dirs,
            ["--describe", "--zookeeper"],
            "--zookeeper is no option of Kafka 4. Type: bin/tool.sh --describe --bootstrap-server localhost:9092\n",
        ),
    ],
)
def test_an_address_of_former_times(module, typed, instead, capsys):
    """Where a tool never took it, is one line printed that gives the command to type, and nothing else?"""
    assert module.main(typed, "bin/tool.sh") == 1
    assert ("", instead) == tuple(capsys.readouterr())


def test_the_same_brokers_are_named():
    """Is the address of brokers kept in the command to type?"""
    with pytest.raises(GoneOption) as raised:
        read_options(Tool(name="tool", summary="", options=(BOOTSTRAP,)), ["--broker-list", "a:1,b:2"])

    assert raised.value.words == ["--bootstrap-server", "a:1,b:2"]

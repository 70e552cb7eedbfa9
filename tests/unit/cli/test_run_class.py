"""kafka-run-class: tools by the names of their Java classes."""

import pytest

from headrace.cli import get_offsets, run_class, server_start
from headrace.cli.main import TOOLS
from headrace.cli.run_class import CLASSES, USAGE, main


@pytest.fixture
def called(monkeypatch):
    """What the tools that are run are given."""
    seen = []
    for module in (get_offsets, server_start):
        monkeypatch.setattr(module, "main", lambda words, program: seen.append((program, words)) or 3)
    return seen


@pytest.mark.parametrize("name", ["kafka.tools.GetOffsetShell", "org.apache.kafka.tools.GetOffsetShell"])
def test_a_class_is_its_tool(called, name):
    """Is the tool of a class run with what follows, whichever package the class is in, and its exit code kept?"""
    assert 3 == main([name, "--broker-list", "localhost:9092", "--topic", "t"], "kafka-run-class.sh")
    assert [("kafka-get-offsets", ["--broker-list", "localhost:9092", "--topic", "t"])] == called


def test_options_of_javas_process(called):
    """Are the options for Java's process taken away, and a server started in the background where they say so?"""
    assert 3 == main(["-name", "kafkaServer", "-loggc", "-daemon", "kafka.Kafka", "a.properties"], "kafka-run-class.sh")
    assert [("kafka-server-start", ["-daemon", "a.properties"])] == called


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("kafka.tools.GetOfsetShell", "There is no Java here; did you mean GetOffsetShell?\n"),
        ("x.Y", f"There is no Java here; the classes that are tools are: {', '.join(CLASSES)}.\n"),
    ],
)
def test_a_class_nobody_knows(capsys, name, hint):
    """Is a class that is no tool refused in Java's words, with what there is?"""
    assert 1 == main([name], "kafka-run-class.sh")
    assert f"Error: Could not find or load main class {name}\n{hint}" == capsys.readouterr().err


def test_nothing_typed(capsys):
    """Is the usage Kafka's where no class is named?"""
    assert 1 == main([], "bin/kafka-run-class.sh")
    assert f"{USAGE.format('bin/kafka-run-class.sh')}\n" == capsys.readouterr().out


def test_every_tool_has_its_class():
    """Is every tool of Kafka 4 but the scripts there by its class?"""
    scripts = {"kafka-run-class", "kafka-server-stop", "zookeeper-server-start", "zookeeper-server-stop"}

    assert set(TOOLS) - scripts == set(run_class.CLASSES.values())

"""The ZooKeeper commands of older tutorials, which have nothing to do here and say so."""

from pathlib import Path

import pytest

from headrace.cli import zookeeper_server_start, zookeeper_server_stop

CONFIG = Path(__file__).parents[3] / "config/zookeeper.properties"


@pytest.mark.parametrize("daemon", [[], ["-daemon"]])
def test_start_lets_the_tutorial_go_on(capsys, daemon):
    """Does starting ZooKeeper succeed, with one sentence that names the next command?"""
    code = zookeeper_server_start.main([*daemon, str(CONFIG)], "bin/zookeeper-server-start.sh")

    expected = (
        "This cluster needs no ZooKeeper, and none was started; "
        "go on with: bin/kafka-server-start.sh config/server.properties\n"
    )
    assert (code, *capsys.readouterr()) == (0, "", expected)


def test_start_without_arguments(capsys):
    """Is the usage line Kafka's, with its exit code?"""
    assert zookeeper_server_start.main([], "bin/zookeeper-server-start.sh") == 1
    assert capsys.readouterr().out == "USAGE: bin/zookeeper-server-start.sh [-daemon] zookeeper.properties\n"


def test_start_with_a_file_that_is_not_there(capsys):
    """Is a wrong file name refused, as ZooKeeper would have?"""
    assert zookeeper_server_start.main(["absent.properties"], "zookeeper-server-start") == 1
    assert "absent.properties" in capsys.readouterr().err


def test_stop_finds_nothing(capsys):
    """Are Kafka's sentence and exit code given where there is nothing to stop?"""
    assert zookeeper_server_stop.main([], "zookeeper-server-stop") == 1
    assert capsys.readouterr().out == "No zookeeper server to stop\n"

"""The first voters of a quorum, read from the command line and written where a controller finds them."""

from uuid import UUID

import pytest

from headrace.cli.initial_voters import BadVoters, directory_of, only_voter, parse_voters
from headrace.cli.storage import main
from headrace.coordination.quorum.snapshot_file import SnapshotFiles
from headrace.cores.raft.log_mirror import EMPTY
from headrace.model.ids import encode_uuid
from headrace.settings.broker import BrokerConfig
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import read_meta

FIRST, SECOND = UUID(int=5 << 90), UUID(int=6 << 90)
TEXT = f"1@a.example:9093:{encode_uuid(FIRST)},2@[::1]:9094:{encode_uuid(SECOND)}"
CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def settings(tmp_path, node_id=1):
    """A controller whose quorum is named by the log."""
    return {
        "process.roles": "controller",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": "a.example:9093,b.example:9094",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://a.example:9093",
        "log.dirs": str(tmp_path / "data"),
    }


def formatted(tmp_path, *arguments, node_id=1):
    """The exit code of `kafka-storage format`."""
    config = tmp_path / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings(tmp_path, node_id).items()))
    return main(["format", "--cluster-id", CLUSTER, "--config", str(config), *arguments], "kafka-storage")


def written(tmp_path):
    """The voters that are on the disk."""
    return SnapshotFiles(RealFiles(), str(tmp_path / "data" / "__cluster_metadata-0")).head(EMPTY).voters


def test_voters_are_read():
    """Are ids, addresses and directories understood, IPv6 too?"""
    voters = parse_voters(TEXT, "CONTROLLER")

    assert [(one.key.id, one.key.directory_id) for one in voters.by_id.values()] == [(1, FIRST), (2, SECOND)]
    assert [(one.endpoints[0].host, one.endpoints[0].port) for one in voters.by_id.values()] == [
        ("a.example", 9093),
        ("::1", 9094),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Cannot read ''"),
        ("1@host:9093", "Write id@host:port:directory-id"),
        (f"1@host:99999:{encode_uuid(FIRST)}", "Cannot read"),
        (f"1@a:1:{encode_uuid(FIRST)},1@b:2:{encode_uuid(SECOND)}", "appears twice"),
    ],
)
def test_voters_that_cannot_be(text, sentence):
    """Is a list that makes no sense refused with how to write it?"""
    with pytest.raises(BadVoters, match=sentence):
        parse_voters(text, "CONTROLLER")


def test_a_controller_that_is_not_among_them():
    """Is a node refused that would format itself into a quorum without it?"""
    with pytest.raises(BadVoters, match=r"This controller, 3, is not in --initial-controllers\."):
        directory_of(parse_voters(TEXT, "CONTROLLER"), 3)


def test_initial_controllers_are_written(tmp_path):
    """Does the first start find the voters, and has the node the directory id it has among them?"""
    assert formatted(tmp_path, "--initial-controllers", TEXT) == 0

    assert written(tmp_path) == parse_voters(TEXT, "CONTROLLER")
    assert read_meta(RealFiles(), str(tmp_path / "data")).directory_id == FIRST


def test_standalone_is_written(tmp_path):
    """Is a controller alone the one voter, where its listener is told to be?"""
    assert formatted(tmp_path, "--standalone") == 0

    directory_id = read_meta(RealFiles(), str(tmp_path / "data")).directory_id
    assert written(tmp_path) == only_voter(BrokerConfig.from_properties(settings(tmp_path)), directory_id)
    assert [(one.host, one.port) for one in written(tmp_path).endpoints(1)] == [("a.example", 9093)]


def test_nobody_is_written(tmp_path, capsys):
    """Is nothing said of voters where they are named later, and nothing formatted where the list is wrong?"""
    assert formatted(tmp_path, "--no-initial-controllers") == 0
    assert not (tmp_path / "data" / "__cluster_metadata-0").exists()

    other = tmp_path / "other"
    other.mkdir()
    assert formatted(other, "--initial-controllers", TEXT, node_id=3) == 1
    assert "is not in --initial-controllers" in capsys.readouterr().err
    assert not (other / "data").exists()

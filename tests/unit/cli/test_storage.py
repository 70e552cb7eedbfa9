"""kafka-storage: the sentences and files of Kafka 4.3's own tool, as far as a script can see them."""

import json

import pytest

from headrace.cli import features, storage
from headrace.cli.feature_levels import RELEASES
from headrace.coordination.quorum.bootstrap_file import read_bootstrap
from headrace.model.ids import decode_uuid
from headrace.storage.files import RealFiles

STARTS_AT = "A new cluster of Headrace starts at metadata.version 4.0-IV3 unless it is formatted for another."
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"

COMBINED = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
log.dirs={a},{b}
"""


@pytest.fixture
def node(tmp_path):
    """A combined node with two log directories, neither formatted."""
    return Node(tmp_path)


class Node:
    """Settings in a file, and the tool run on them."""

    def __init__(self, directory):
        self.directory = directory
        self.a, self.b = directory / "a", directory / "b"
        self.config = directory / "server.properties"
        self.config.write_text(COMBINED.format(a=self.a.as_posix(), b=self.b.as_posix()))

    def change(self, old: str, new: str) -> None:
        self.config.write_text(self.config.read_text().replace(old, new))

    def run(self, command: str, *arguments: str) -> int:
        return storage.main([command, "-c", str(self.config), *arguments], "kafka-storage.sh")

    def format(self, *arguments: str) -> int:
        return self.run("format", "-t", CLUSTER, *arguments)


def test_random_uuid(capsys):
    """Is a random id one that Kafka can read, and another one every time?"""
    for _ in range(2):
        assert storage.main(["random-uuid"], "kafka-storage.sh") == 0
    first, second = capsys.readouterr().out.split()

    assert decode_uuid(first) != decode_uuid(second)
    assert len(first) == 22


def test_format_writes_and_says_so(node, capsys):
    """Are both directories made, given their identity, and named in Kafka's words?"""
    assert node.format() == 0
    assert capsys.readouterr().out == (
        f"Formatting metadata directory {node.a} with metadata.version 4.0-IV3.\n"
        f"Formatting data directory {node.b} with metadata.version 4.0-IV3.\n"
    )
    lines = (node.a / "meta.properties").read_text().splitlines()
    assert {f"cluster.id={CLUSTER}", "node.id=1", "version=1"} < set(lines)
    assert (node.a / "meta.properties").read_text() != (node.b / "meta.properties").read_text()


def test_format_twice_is_refused(node, capsys):
    """Is a formatted directory left as it is and named, unless it is to be ignored?"""
    node.format()
    before = (node.a / "meta.properties").read_text()
    capsys.readouterr()

    assert node.format() == 1
    assert capsys.readouterr().err == (
        f"Log directory {node.a} is already formatted. "
        "Use --ignore-formatted to ignore this directory and format the others.\n"
    )
    assert node.format("--ignore-formatted") == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"
    assert (node.a / "meta.properties").read_text() == before


def test_format_the_others(node, capsys):
    """With --ignore-formatted, is a directory that was added later formatted like the others?"""
    node.format()
    (node.b / "meta.properties").unlink()
    capsys.readouterr()

    assert node.format("-g") == 0
    assert capsys.readouterr().out == f"Formatting data directory {node.b} with metadata.version 4.0-IV3.\n"


def test_other_cluster_is_refused(node, capsys):
    """Is a directory of another cluster refused, whatever is to be ignored?"""
    node.format()

    assert node.run("format", "-t", "other", "-g") == 1
    assert capsys.readouterr().err == (
        f"Invalid cluster.id in: {node.a / 'meta.properties'}. Expected other, but read {CLUSTER}\n"
    )


def test_other_node_is_refused(node, capsys):
    """Is a directory of another node refused?"""
    node.format()
    node.change("node.id=1", "node.id=2")
    node.change("voters=1@", "voters=2@")

    assert node.format("-g") == 1
    assert capsys.readouterr().err.startswith("Stored node id 1 doesn't match previous node id 2 in ")


@pytest.mark.parametrize("cluster_id", ["", " ", "two\nlines"])
def test_cluster_id_must_be_a_name(node, capsys, cluster_id):
    """Is a cluster id that would spoil the file refused before anything is written?"""
    assert node.run("format", "-t", cluster_id) == 1
    assert "random-uuid" in capsys.readouterr().err
    assert not node.a.exists()


def test_quorum_must_be_named(node, capsys):
    """Without voters in the file, must one of the flags say how the quorum begins, and is each accepted?"""
    node.change("controller.quorum.voters=1@", "controller.quorum.bootstrap.servers=")

    assert node.format() == 1
    assert capsys.readouterr().err.startswith("Because controller.quorum.voters is not set on this controller")
    assert node.format("--standalone", "--feature", "kraft.version=1") == 0
    assert f"Formatting dynamic metadata voter directory {node.a} with" in capsys.readouterr().out
    assert node.format("--no-initial-controllers", "-g") == 0


def test_voters_and_standalone(node, capsys):
    """Is --standalone refused where the file names the voters?"""
    assert node.format("-s") == 1
    assert capsys.readouterr().err.startswith("You cannot specify controller.quorum.voters and format the node with")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["-f", "nonsense=1"],
            (
                "Unsupported feature: nonsense. Supported features are: eligible.leader.replicas.version, "
                "group.version, kraft.version, metadata.version, share.version, streams.version, transaction.version"
            ),
        ),
        (["-f", "metadata.version"], "Can't parse feature=level string metadata.version: equals sign not found."),
        (["-f", "metadata.version=99"], "No feature:metadata.version with feature level 99"),
        (["-f", "share.version=2"], "No feature:share.version with feature level 2"),
        (["-f", "kraft.version=1"], "kraft.version is 0 in a quorum that is formatted like this."),
        (
            ["-r", "4.2", "-f", "metadata.version=30"],
            "Use --release-version instead of --feature metadata.version=X to avoid ambiguity.",
        ),
        (["-r", "9.9"], f"Unknown metadata.version '9.9'. Supported metadata.version are: {', '.join(RELEASES)}"),
        (["-r", "3.9-IV0"], "metadata.version 3.9-IV0 is not served: 4.0-IV3 to 4.3-IV0 are."),
        (["-r", "4.4-IV0"], "metadata.version 4.4-IV0 is not served: 4.0-IV3 to 4.3-IV0 are."),
    ],
)
def test_features(node, capsys, arguments, words):
    """Is a feature or release that is not served refused rather than swallowed?"""
    assert node.format(*arguments) == 1
    assert capsys.readouterr().err == words + "\n"


def test_a_file_in_the_way(node, capsys):
    """Is a log directory that is a file passed over, and the tool fail if there is no other?"""
    node.a.touch()
    node.b.touch()

    assert node.format() == 1
    captured = capsys.readouterr()
    assert f"I/O error trying to read log directory {node.a}. Ignoring...\n" in captured.out
    assert captured.err == "No available log directories to format.\n"


def test_info_of_formatted_directories(node, capsys):
    """Does info print the directories and their identity as Kafka does, and succeed?"""
    node.format()
    capsys.readouterr()

    assert node.run("info") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Found log directories:\n  {node.a}\n  {node.b}\n\nFound metadata: {{cluster.id={CLUSTER}, ")
    assert out.endswith(", node.id=1, version=1}\n\n")


def test_info_names_every_problem(node, capsys):
    """Does info name a directory that is missing and one that is not formatted, and exit 1?"""
    node.a.mkdir()

    assert node.run("info") == 1
    assert capsys.readouterr().out == (
        f"Found log directory:\n  {node.a}\n\n"
        f"Found problems:\n  {node.a} is not formatted.\n  {node.b} does not exist\n\n"
    )


def test_info_of_directories_that_disagree(node, capsys):
    """Does info see directories of different clusters, and an identity that makes no sense?"""
    node.format()
    file = node.b / "meta.properties"
    capsys.readouterr()

    file.write_text(file.read_text().replace(CLUSTER, "other"))
    assert node.run("info") == 1
    assert "Found problem:\n  Mismatched cluster IDs between storage directories.\n" in capsys.readouterr().out

    file.write_text("version=1\n")
    assert node.run("info") == 1
    assert f"Found problem:\n  Error loading {file}: " in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["format", "-c", "x"], ["format", "-t", "x"]])
def test_usage_errors(capsys, arguments):
    """Do usage errors print the usage on stderr and exit 1?"""
    with pytest.raises(SystemExit) as ended:
        storage.main(arguments, "kafka-storage.sh")

    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("usage: kafka-storage")


def test_missing_config(tmp_path, capsys):
    """Is a settings file that is not there named?"""
    assert storage.main(["info", "-c", str(tmp_path / "none")], "kafka-storage.sh") == 1
    assert str(tmp_path / "none") in capsys.readouterr().err


def test_results_for_programs(node, capsys):
    """Is every result one document with `--output json`, and nothing else on the output?"""

    def document(*arguments: str):
        storage.main([*arguments, "--output", "json"], "kafka-storage.sh")
        return json.loads(capsys.readouterr().out)

    where = ("-c", str(node.config))
    assert len(document("random-uuid")["uuid"]) == 22
    assert document("info", *where)["problems"] == [f"{path} does not exist" for path in (node.a, node.b)]
    both = [str(node.a), str(node.b)]
    assert document("format", "-t", CLUSTER, *where) == {
        "clusterId": CLUSTER,
        "formatted": both,
        "formattedBefore": [],
        "metadataVersion": storage.RELEASE,
    }
    assert document("info", *where) == {
        "directories": both,
        "metadata": {"clusterId": CLUSTER, "nodeId": 1},
        "problems": [],
    }
    assert document("version-mapping", "-r", "4.0")["features"]["group.version"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["version-mapping"],
        ["version-mapping", "--release-version", "3.9"],
        ["version-mapping", "--release-version", "9.9"],
        ["feature-dependencies", "--feature", "group.version=1"],
        ["feature-dependencies", "--feature", "eligible.leader.replicas.version=1", "--feature", "x=1"],
    ],
)
def test_what_is_known_of_features(capsys, arguments):
    """Are releases and features looked up as kafka-features does it, which is held against Kafka's own?"""
    theirs = features.main(arguments, "kafka-features"), capsys.readouterr()
    ours = storage.main(arguments, "kafka-storage.sh"), capsys.readouterr()
    is_elsewhere = "version-mapping" in arguments and not theirs[0]

    assert (theirs[0], theirs[1].out) == (ours[0], ours[1].out)
    assert theirs[1].err + (f"{STARTS_AT}\n" if is_elsewhere else "") == ours[1].err


@pytest.mark.parametrize(
    ("arguments", "named", "expected"),
    [
        ([], "4.0-IV3", {}),
        (["-r", "4.0"], "4.0-IV3", {}),
        (["-r", "4.1-IV0"], "4.1-IV0", {"metadata.version": 26, "eligible.leader.replicas.version": 1}),
        (["-r", "4.3"], "4.3-IV0", {"metadata.version": 30, "eligible.leader.replicas.version": 1}),
        (["-f", "metadata.version=29"], "4.2-IV1", {"metadata.version": 29, "eligible.leader.replicas.version": 1}),
        (["-r", "4.3", "-f", "eligible.leader.replicas.version=0"], "4.3-IV0", {"metadata.version": 30}),
        (["-f", "transaction.version=1"], "4.0-IV3", {"transaction.version": 1}),
    ],
)
def test_levels_of_a_new_cluster(node, capsys, arguments, named, expected):
    """Are the levels of the release, and those that are asked for, written where the first start finds them?"""
    usual = {"metadata.version": 25, "transaction.version": 2}
    usual |= dict.fromkeys(("group.version", "share.version", "streams.version"), 1)
    assert 0 == node.format(*arguments)
    first, *others = read_bootstrap(RealFiles(), str(node.a))

    assert f"Formatting metadata directory {node.a} with metadata.version {named}.\n" in capsys.readouterr().out
    assert usual | expected == {record.name: record.feature_level for record in (first, *others)}
    assert "metadata.version" == first.name
    assert not (node.b / "bootstrap.checkpoint").exists()


@pytest.mark.parametrize("release", ["4.0", "4.0-IV3"])
def test_the_release_that_is_served(node, capsys, release):
    """Is the release that a new cluster starts at taken by its names, and looked up without a remark?"""
    assert 0 == node.format("--release-version", release)
    assert 0 == storage.main(["version-mapping", "-r", release], "kafka-storage.sh")
    assert "" == capsys.readouterr().err


def test_credentials_are_refused(node, capsys):
    """Is it said in a sentence that credentials would not be kept, and nothing formatted?"""
    assert node.format("--add-scram", "SCRAM-SHA-256=[name=alice,password=secret]") == 1
    assert capsys.readouterr().err.startswith("Credentials for SCRAM are not kept")
    assert not node.a.exists()

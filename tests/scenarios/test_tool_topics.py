"""kafka-topics against a broker in this process: what it prints, refuses and exits with."""

import json
import re

import pytest

from headrace.cli.topics import COLLISION_WARNING, main


@pytest.fixture
def topics(headrace_cluster, capsys, monkeypatch, tmp_path):
    """Runs the tool; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))

    def run(*arguments, bootstrap=headrace_cluster.bootstrap):
        where = ("--bootstrap-server", bootstrap) if bootstrap else ()
        code = main([*where, *map(str, arguments)], "kafka-topics")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_a_topic_lives_and_dies(topics):
    """Can a topic be created, listed, extended and deleted with Kafka's texts, silent where Kafka is?"""
    assert topics("--create", "--topic", "orders") == (0, "Created topic orders.\n", "")
    assert topics("--list") == (0, "orders\n", "")
    assert topics("--alter", "--topic", "orders", "--partitions", 3) == (0, "", "")
    assert topics("--delete", "--topic", "orders") == (0, "", "")
    assert topics("--list") == (0, "\n", "")


def test_the_warning_of_trucks_gps(topics):
    """Does the collision warning precede, and only where the name has a dot or an underscore?"""
    assert topics("--create", "--topic", "trucks_gps") == (
        0,
        f"{COLLISION_WARNING}\nCreated topic trucks_gps.\n",
        "",
    )


def test_describe_is_tab_separated(topics):
    """Is it a line per topic and an indented line per partition, tabs and trailing blanks as Kafka's?"""
    topics("--create", "--topic", "quickstart-events", "--partitions", 2, "--config", "retention.ms=99")
    code, out, _ = topics("--describe", "--topic", "quickstart-events")

    first, *rest = out.splitlines()
    assert code == 0
    assert re.fullmatch(
        r"Topic: quickstart-events\tTopicId: [\w-]{22}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: retention\.ms=99",
        first,
    )
    assert rest == [
        f"\tTopic: quickstart-events\tPartition: {index}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        for index in (0, 1)
    ]


def test_describe_pages(topics):
    """Are all partitions shown, in order, when they come in small answers?"""
    topics("--create", "--topic", "a", "--partitions", 5)
    topics("--create", "--topic", "b", "--partitions", 3)

    _, out, _ = topics("--describe", "--partition-size-limit-per-response", 2)

    assert re.findall(r"\tTopic: (\w)\tPartition: (\d)", out) == [
        *(("a", str(index)) for index in range(5)),
        *(("b", str(index)) for index in range(3)),
    ]


def test_describe_by_id(topics):
    """Is a topic found by its id, and is an id nobody has refused?"""
    topics("--create", "--topic", "a")
    topic_id = json.loads(topics("--describe", "--output", "json")[1])[0]["topicId"]

    assert topics("--describe", "--topic-id", topic_id)[1].startswith(f"Topic: a\tTopicId: {topic_id}\t")
    assert topics("--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ") == (
        1,
        "Error while executing topic command : TopicId 'AAAAAAAAAAAAAAAAAAAAAQ' does not exist as expected\n",
        "",
    )
    assert topics("--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--if-exists") == (0, "", "")


@pytest.mark.parametrize("report", ["under-replicated", "unavailable", "under-min-isr", "at-min-isr"])
def test_reports_show_only_what_they_are_about(topics, report):
    """On a healthy broker, is only the report about partitions at their minimum not empty?"""
    topics("--create", "--topic", "a")

    out = topics("--describe", f"--{report}-partitions")[1]

    assert bool(out) is (report == "at-min-isr")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--create", "--topic", "a"), "Topic 'a' already exists."),
        (("--create", "--topic", "x", "--partitions", 0), "The partitions must be greater than 0"),
        (
            ("--create", "--topic", "x", "--replication-factor", 40000),
            "The replication factor must be between 1 and 32767 inclusive",
        ),
        (("--create", "--topic", "x", "--config", "x.y=3"), "Unknown topic config name: x.y"),
        (
            ("--create", "--topic", "x", "--config", "a="),
            'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".',
        ),
        (
            ("--create", "--topic", "x", "--replica-assignment", "1:1"),
            "Partition replica lists may not contain duplicate entries: 1",
        ),
        (
            ("--create", "--topic", "x", "--replica-assignment", "1,1:2"),
            "Partition 1 has different replication factor: [1, 2]",
        ),
        (("--describe", "--topic", "nix"), "Topic 'nix' does not exist as expected"),
        (("--delete", "--topic", "nix"), "Topic 'nix' does not exist as expected"),
        (("--describe", "--topic", "a["), "a[ is an invalid regex."),
    ],
)
def test_refusals_are_kafkas(topics, arguments, sentence):
    """Is what cannot be done said in Kafka's sentence on standard output, with exit code 1?"""
    topics("--create", "--topic", "a")

    assert topics(*arguments) == (1, f"Error while executing topic command : {sentence}\n", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Command must include exactly one action: --list, --describe, --create, --alter or --delete"),
        (("--list", "--delete"), "Command must include exactly one action"),
        (("--create",), 'Missing required argument "[topic]"'),
        (("--alter", "--topic", "a"), 'Missing required argument "[partitions]"'),
        (("--list", "--partitions", 2), 'Option "[partitions]" can\'t be used with option "[list]"'),
        (("--describe", "--if-exists"), "--topic or --topic-id is required to describe a topic"),
        (("--create", "--topic", "a", "--if-exists"), 'Option "[if-exists]" can\'t be used with option "[create]"'),
        (("--list", "--topc", "a"), "topc is not a recognized option; did you mean --topic?"),
    ],
)
def test_mistakes_show_the_usage(topics, arguments, sentence):
    """Is what does not go together refused on the error stream, with the usage below?"""
    code, out, err = topics(*arguments)

    assert (code, out) == (1, "")
    assert err.startswith(sentence)
    assert "--replica-assignment" in err


def test_if_exists_and_if_not_exists(topics):
    """Do the two flags make an error of a topic's being there or not into a success?"""
    topics("--create", "--topic", "a")

    assert topics("--create", "--topic", "a", "--if-not-exists") == (0, "", "")
    assert topics("--delete", "--topic", "nix", "--if-exists") == (0, "", "")
    assert topics("--describe", "--topic", "nix", "--if-exists") == (0, "", "")


def test_old_tutorials_say_zookeeper(topics, headrace_cluster, monkeypatch):
    """Does `--list --zookeeper localhost:2181` list, with one line that says whom it asks instead?"""
    topics("--create", "--topic", "Topic")
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", headrace_cluster.bootstrap)

    code, out, err = topics("--list", "--zookeeper", "localhost:2181", bootstrap=None)

    assert (code, out) == (0, "Topic\n")
    assert err == f"Kafka 4 has no ZooKeeper, so --zookeeper is not used: asking {headrace_cluster.bootstrap}.\n"


def test_a_single_dash_works_too(topics):
    """Does -topic work, as people type it?"""
    topics("--create", "--topic", "myTopic")

    assert topics("--describe", "-topic", "myTopic")[0] == 0


def test_without_an_address(topics):
    """Is the missing address said in Kafka's words, and what to do about it?"""
    code, out, err = topics("--list", bootstrap=None)

    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "--bootstrap-server must be specified",
        "Say where a broker is: --bootstrap-server localhost:9092",
    ]


def test_results_for_programs(topics):
    """Is every result there as JSON too, with nothing else on standard output?"""
    created = json.loads(topics("--create", "--topic", "a_b", "--partitions", 2, "--output", "json")[1])
    (described,) = json.loads(topics("--describe", "--output", "json")[1])

    assert (created["topic"], created["created"]) == ("a_b", True)
    assert described["topicId"] == created["topicId"]
    assert [row["leader"] for row in described["partitions"]] == [1, 1]
    assert json.loads(topics("--list", "--output", "json")[1]) == ["a_b"]
    assert json.loads(topics("--delete", "--topic", "a_b", "--output", "json")[1]) == {"deleted": ["a_b"]}

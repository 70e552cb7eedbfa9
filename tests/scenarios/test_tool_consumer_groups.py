"""kafka-consumer-groups against a broker in this process, with live members of both protocols."""

import json
import socket

import confluent_kafka
import pytest

from clients.confluent_members import CLASSIC, CONSUMER, Member, until_share
from clients.quick_groups import QUICK_GROUPS
from headrace.cli.consumer_groups import main
from wire_client import WireClient

GROUP = "fleet"
PAIRS = {"classic": CLASSIC, "consumer": CONSUMER}
by_protocol = pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=list(PAIRS))


@pytest.fixture
def headrace_settings():
    """A broker whose groups react at once."""
    return QUICK_GROUPS


@pytest.fixture
def tool(headrace_cluster, capsys, monkeypatch, tmp_path):
    """Runs the tool; gives its exit code and what it printed. The topic "trucks" holds ten records per partition."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    with WireClient(headrace_cluster.port) as wire:
        wire.create_topic("trucks", partitions=2, **{"retention.ms": "-1"})
        wire.create_topic("other")
    producer = confluent_kafka.Producer({"bootstrap.servers": headrace_cluster.bootstrap, "log_level": 2})
    for number in range(20):
        producer.produce("trucks", str(number), partition=number % 2, timestamp=1_000 * (number // 2) + 1_000)
    assert producer.flush(30) == 0

    def run(*arguments):
        code = main(["--bootstrap-server", headrace_cluster.bootstrap, *map(str, arguments)], "kafka-consumer-groups")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def move(tool):
    """Moves the group's offsets; gives the exit code and the new offset of each partition of "trucks"."""

    def run(*how, mode="--execute"):
        code, out, _ = tool("--reset-offsets", "--group", GROUP, "--topic", "trucks", *how, mode, "--output", "json")
        return code, {row["partition"]: row["newOffset"] for row in json.loads(out)}

    return run


@pytest.fixture
def member(headrace_cluster, tool):
    """Starts a member that holds both partitions, and has committed offset 4 of the first."""
    live = []

    def start(protocol, **settings) -> Member:
        one = Member(headrace_cluster.bootstrap, GROUP, ["trucks"], **{"client.id": "truck-1", **protocol, **settings})
        live.append(one)
        until_share([one], "trucks", 2)
        one.consumer.commit(offsets=[confluent_kafka.TopicPartition("trucks", 0, 4)], asynchronous=False)
        return one

    yield start
    for one in live:
        one.close()


@by_protocol
def test_a_live_group_is_described(tool, member, protocol):
    """Are offsets, lag and the reader of each partition shown in Kafka's columns?"""
    name = member(protocol).consumer.memberid()
    width = max(15, len(name))
    expected = (
        "\n"
        f"GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        f"{'CONSUMER-ID':<{width}} HOST            CLIENT-ID\n"
        f"fleet           trucks          0          4               10              6               "
        f"{name:<{width}} /127.0.0.1      truck-1\n"
        f"fleet           trucks          1          -               10              -               "
        f"{name:<{width}} /127.0.0.1      truck-1\n"
    )

    assert (0, expected, "") == tool("--describe", "--group", GROUP)
    assert (0, expected, "") == tool("--describe", "--all-groups", "--offsets")


def test_members_of_a_classic_group(tool, member):
    """Is the blank at the end of the line there, and do classic members have no epochs?"""
    name = member(CLASSIC).consumer.memberid()
    columns = f"GROUP           {'CONSUMER-ID':<{len(name)}} HOST            CLIENT-ID       #PARTITIONS     "
    row = f"fleet           {name} /127.0.0.1      truck-1         2               "
    more = "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   "
    assigned = "-               trucks:0,1           -               -                   "

    assert (0, f"\n{columns}\n{row}\n", "") == tool("--describe", "--group", GROUP, "--members")
    shown = tool("--describe", "--group", GROUP, "--members", "--verbose")
    assert (0, f"\n{columns}{more}\n{row}{assigned}\n", "") == shown


def test_members_of_a_consumer_group(tool, member):
    """Are epochs, assignments and the name of a static member shown?"""
    member(CONSUMER, **{"group.instance.id": "seat-7"})
    code, out, _ = tool("--describe", "--group", GROUP, "--members", "--verbose")
    blank, heading, row = out.splitlines()

    assert (0, "") == (code, blank)
    assert heading.split()[2] == "GROUP-INSTANCE-ID"
    assert ["seat-7", "/127.0.0.1", "truck-1", "2"] == row.split()[2:6]
    assert ["trucks:0,1", "trucks:0,1"] == row.split()[7::2]


def test_the_state_of_a_group(tool, member, headrace_cluster):
    """Are coordinator, strategy, state and size shown?"""
    member(CLASSIC)
    where = f"{headrace_cluster.bootstrap}  (1)"
    expected = (
        "\nGROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS\n"
        f"fleet           {where:<25} range                Stable               1\n"
    )

    assert (0, expected, "") == tool("--describe", "--group", GROUP, "--state")


def test_groups_are_listed(tool, member, move):
    """Can groups be listed alone, with their state and type, and by them?"""
    member(CONSUMER)
    tool("--reset-offsets", "--group", "idle", "--topic", "trucks", "--to-earliest", "--execute")
    heading = f"{'GROUP':<25} {'TYPE':<20} {'STATE':<20}\n"
    fleet, idle = (
        f"{'fleet':<25} {'Consumer':<20} {'Stable':<20}\n",
        f"{'idle':<25} {'Classic':<20} {'Empty':<20}\n",
    )

    assert {"fleet", "idle"} == set(tool("--list")[1].split())
    assert heading + fleet == tool("--list", "--state", "stable", "--type")[1]
    assert heading + idle == tool("--list", "--type", "classic", "--state")[1]
    assert {heading, fleet, idle} == set(tool("--list", "--state", "--type")[1].splitlines(keepends=True))
    code, out, _ = tool("--list", "--output", "json")
    assert (code, {"Stable", "Empty"}) == (0, {row["state"] for row in json.loads(out)})


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--to-latest",), {0: 10, 1: 10}),
        (("--to-offset", 3), {0: 3, 1: 3}),
        (("--to-offset", 300), {0: 10, 1: 10}),
        (("--shift-by", -2), {0: 3, 1: 3}),
        (("--shift-by", -20), {0: 0, 1: 0}),
        (("--to-current",), {0: 5, 1: 5}),
        (("--to-datetime", "1970-01-01T00:00:04.000"), {0: 3, 1: 3}),
        (("--to-datetime", "2170-01-01T00:00:00.000"), {0: 10, 1: 10}),
        (("--by-duration", "PT1S"), {0: 10, 1: 10}),
    ],
)
def test_offsets_are_moved(move, how, expected):
    """Does each scenario move the offsets, and only when it is told to?"""
    assert (0, {0: 5, 1: 5}) == move("--to-offset", 5)
    assert (0, expected) == move(*how, mode="--dry-run")
    assert (0, {0: 5, 1: 5}) == move("--to-current", mode="--dry-run")
    assert (0, expected) == move(*how)
    assert (0, expected) == move("--to-current", mode="--dry-run")


def test_a_reset_is_printed_as_kafka_prints_it(tool):
    """Is the table Kafka's, with the warning when nothing will be done?"""
    code, out, err = tool("--reset-offsets", "--group", GROUP, "--topic", "trucks:1", "--to-latest")

    assert (
        0,
        "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\nfleet           trucks          1          10\n",
    ) == (
        code,
        out,
    )
    assert err.startswith("WARN: No action will be performed as the --execute option is missing. In version 5.0, ")


def test_a_plan_goes_out_and_comes_back(tool, move, tmp_path):
    """Does --from-file read what --export wrote?"""
    typed = ("--reset-offsets", "--group", GROUP, "--topic", "trucks", "--to-offset", 7, "--dry-run", "--export")
    code, out, _ = tool(*typed)
    assert (0, {"trucks,0,7", "trucks,1,7", ""}) == (code, set(out.splitlines()))
    plan = tmp_path / "plan.csv"
    plan.write_text(out)

    assert 0 == tool("--reset-offsets", "--group", GROUP, "--from-file", plan, "--execute")[0]
    assert (0, {0: 7, 1: 7}) == move("--to-current", mode="--dry-run")


@by_protocol
def test_a_group_in_use_is_left_alone(tool, member, protocol):
    """Are moving offsets, forgetting them and deleting the group refused while it has members, with a code of 1?"""
    member(protocol)
    where = ("--group", GROUP, "--topic", "trucks")

    moved = tool("--reset-offsets", *where, "--to-earliest", "--execute")
    forgotten = tool("--delete-offsets", *where)
    deleted = tool("--delete", "--group", GROUP)

    message = (
        "\nError: Assignments can only be reset if the group 'fleet' is inactive, but the current state is Stable.\n"
    )
    assert (1, f"{message}\nGROUP           TOPIC           PARTITION  NEW-OFFSET\n") == moved[:2]
    assert "Error: Encountered some partition-level error, see the follow-up details.\n" in forgotten[1]
    expected = (
        "\nError: Deletion of some consumer groups failed:\n* Group 'fleet' could not be deleted due to: "
        "org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty.\n"
    )
    assert (1, expected, "Stop the group's members first, then try again.\n") == deleted
    assert [1, 1] == [moved[0], forgotten[0]]
    assert "4               10" in tool("--describe", "--group", GROUP)[1]


def test_an_empty_group_is_said_to_be_empty(tool, move):
    """Is the notice on the error stream, the offsets on the other, and the code 0?"""
    move("--to-offset", 2)
    code, out, err = tool("--describe", "--group", GROUP)

    assert (0, "\nConsumer group 'fleet' has no active members.\n") == (code, err)
    assert out.splitlines()[2].split() == ["fleet", "trucks", "0", "2", "10", "8", "-", "-", "-"]


def test_a_place_that_is_no_number(tool, move):
    """Is it refused as Kafka's tool refuses it, on the output and without its usage, but with a failure's exit code?"""
    typed = ("--reset-offsets", "--group", GROUP, "--topic", "trucks", "--execute", "--to-offset", "x")
    words = "\nError: Executing consumer group command failed due to Cannot parse argument 'x' of option to-offset\n"

    assert (1, words, "") == tool(*typed)


def test_groups_and_offsets_are_deleted(tool, move):
    """Are offsets and then the group gone, with Kafka's words?"""
    move("--to-offset", 2)
    forgotten = tool("--delete-offsets", "--group", GROUP, "--topic", "trucks:0", "--topic", "nowhere")
    rows = (
        "Request succeeded for deleting offsets from group fleet.\n\n"
        "TOPIC           PARTITION  STATUS         \n"
        "nowhere         -          Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "This server does not host this topic-partition.\n"
        "trucks          0          Successful     \n"
    )

    assert (1, rows) == forgotten[:2]
    deleted = tool("--delete", "--group", GROUP)
    assert (0, "Deletion of requested consumer groups ('fleet') was successful.\n", "") == deleted
    assert (0, "", "") == tool("--list")


def test_commands_of_old_tutorials_work(move, headrace_cluster, monkeypatch, capsys):
    """Do --zookeeper and --new-consumer still list the groups, with one line that says whom we ask instead?"""
    move("--to-earliest")
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", headrace_cluster.bootstrap)
    code = main(["--zookeeper", "localhost:2181", "--new-consumer", "--list"], "kafka-consumer-groups")
    shown = capsys.readouterr()

    assert (0, "fleet\n") == (code, shown.out)
    assert 1 == len(shown.err.splitlines())
    assert headrace_cluster.bootstrap in shown.err


def test_a_broker_that_does_not_answer_is_not_waited_for(capsys):
    """Does --timeout bound the wait for somebody who takes the connection and says nothing?"""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        code = main(["--bootstrap-server", where, "--list", "--timeout", "50"], "kafka-consumer-groups")
    shown = capsys.readouterr()

    expected = f"\nError: Executing consumer group command failed due to Nothing answers at {where} within 0.05 s.\n"
    assert (1, expected) == (code, shown.out)
    assert shown.err.startswith("Is the broker running?")


def test_failures_leave_the_results_clean(tool):
    """Is nothing but data on standard output when a program reads it?"""
    code, out, err = tool("--describe", "--group", "nobody", "--output", "json")

    assert (1, "") == (code, out)
    assert "Group nobody not found." in err


def test_an_unknown_group_is_a_failure(tool):
    """Is it Kafka's sentence on standard output, advice on the other, and a code of 1?"""
    expected = (
        "\nError: Executing consumer group command failed due to "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: Group nobody not found.\n"
    )

    assert (1, expected, "Is the name right? --list shows the groups there are.\n") == tool(
        "--describe", "--group", "nobody"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--describe"], "Option [describe] takes one of these options: [all-groups], [group]"),
        (["--list", "--group", "g"], 'Option "[group]" can\'t be used with option "[list]"'),
        (["--delete", "--group", "g", "--topic", "t"], "The consumer does not support topic-specific offset deletion"),
        (
            ["--describe", "--group", "g", "--members", "--state"],
            "Option [describe] takes at most one of these",
        ),
        (["--delete-offsets", "--group", "g"], "Option [delete-offsets] takes the following options: [group], [topic]"),
        (["--list", "--members"], "Option(s) [members] are unavailable given other options on the command line"),
        (["--list", "--state", "happy"], "Invalid state list 'happy'. Valid states are: "),
        (["--list", "--type", "share"], "Invalid types list 'share'. Valid types are: Consumer, Classic"),
        (["--timeout", "5"], "Command must include exactly one action: --list, --describe, --delete, --reset-offsets"),
        (
            ["--reset-offsets", "--group", "g", "--all-topics", "--to-latest", "--to-earliest", "--dry-run"],
            'Option "[to-earliest]" can\'t be used with option "[to-latest]"',
        ),
        (
            ["--reset-offsets", "--group", "g", "--to-latest", "--dry-run"],
            "One of the reset scopes should be defined: --all-topics, --topic.",
        ),
        (
            ["--reset-offsets", "--group", "g", "--topic", "trucks", "--shift-by", "1", "--dry-run"],
            "Cannot shift offset for partition trucks-0 since there is no current committed offset",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(tool, arguments, message):
    """Does each mistake end in Kafka's sentence, the usage and a code of 1?"""
    code, out, err = tool(*arguments)

    assert (1, "") == (code, out)
    assert err.startswith(message)
    assert "--reset-offsets" in err


def test_regular_expressions_are_validated_without_a_broker(capsys):
    """Is it said whether RE2 understands it, also where no broker runs?"""
    assert 0 == main(["--validate-regex", "truck.*"], "kafka-consumer-groups")
    assert "The regular expression `truck.*` is valid.\n" == capsys.readouterr().out
    assert 1 == main(["--validate-regex", "("], "kafka-consumer-groups")
    assert "The regular expression `(` is invalid: missing closing ).\n" == capsys.readouterr().out

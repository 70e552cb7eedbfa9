"""kafka-groups and kafka-share-groups against a broker in this process."""

import json

import pytest

from clients.quick_groups import QUICK_GROUPS
from headrace.cli import consumer_groups, groups, share_groups
from headrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from wire_client import WireClient

MEMBER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def headrace_settings():
    """A broker whose groups react at once."""
    return QUICK_GROUPS


@pytest.fixture
def tool(headrace_cluster, capsys, monkeypatch, tmp_path):
    """Runs a tool; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))

    def run(module, *arguments):
        code = module.main(["--bootstrap-server", headrace_cluster.bootstrap, *arguments], module.TOOL.name)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def beat(headrace_cluster, tool):
    """Lets the one member of the share group "workers" beat; a group of consumers "idle" is there too."""
    with WireClient(headrace_cluster.port, client_id="worker-1") as wire:
        wire.create_topic("jobs", partitions=2)
        tool(consumer_groups, "--reset-offsets", "--group", "idle", "--topic", "jobs", "--to-latest", "--execute")

        def heartbeat(epoch: int):
            request = ShareGroupHeartbeatRequest(
                group_id="workers",
                member_id=MEMBER_ID,
                member_epoch=epoch,
                subscribed_topic_names=("jobs",) if epoch == 0 else None,
            )
            answer = wire.ask("ShareGroupHeartbeat", 1, request)
            assert answer.error_code == 0, answer
            return answer

        yield heartbeat


@pytest.fixture
def at_work(beat):
    """The member has its two partitions; gives its epoch."""
    answer = beat(0)
    for _ in range(100):
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return answer.member_epoch
        answer = beat(answer.member_epoch)
    raise AssertionError(f"no assignment came: {answer}")


def test_groups_of_every_kind_are_listed(tool, at_work):
    """Are kind and protocol shown, in columns of twenty, and do the filters filter?"""
    heading = "GROUP                TYPE                 PROTOCOL            \n"
    idle = "idle                 Classic                                   \n"
    workers = "workers              Share                share                \n"

    code, out, _ = tool(groups, "--list")
    assert (0, heading) == (code, out[: len(heading)])
    assert {idle, workers} == set(out[len(heading) :].splitlines(keepends=True))
    assert (0, heading + workers, "") == tool(groups, "--list", "--share")
    assert (0, heading + idle, "") == tool(groups, "--list", "--consumer")
    assert (0, heading + workers, "") == tool(groups, "--list", "--group-type", "SHARE", "--protocol", "share")
    assert (0, heading, "") == tool(groups, "--list", "--streams")


def test_mistakes_with_kafka_groups(tool):
    """Are they refused in Kafka's words?"""
    both = tool(groups, "--list", "--share", "--consumer")
    assert (1, "") == both[:2]
    assert both[2].startswith('Option "[consumer]" can\'t be used with option "[share]"\n')
    assert tool(groups, "--list", "--group-type", "odd")[2].startswith("--group-type must be a valid group type.\n")
    assert tool(groups, "--share")[2].startswith("Command must include exactly one action: --list.\n")


def test_a_share_group_at_work(tool, at_work, headrace_cluster):
    """Are members, state and the list as Kafka prints them?"""
    heading = (
        "GROUP           CONSUMER-ID            HOST            CLIENT-ID       #PARTITIONS  MEMBER-EPOCH  ASSIGNMENT"
    )
    members = (
        f"\n{heading}\n"
        f"workers         {MEMBER_ID} /127.0.0.1      worker-1        2            {at_work:<13} jobs:0,1\n"
    )
    state = (
        "\nGROUP           COORDINATOR (ID)          STATE           #MEMBERS\n"
        f"workers         {headrace_cluster.bootstrap + '  (1)':<25} Stable          1\n"
    )

    assert (0, members, "") == tool(share_groups, "--describe", "--group", "workers", "--members", "--verbose")
    assert (0, state, "") == tool(share_groups, "--describe", "--all-groups", "--state")
    assert (0, "GROUP           STATE\nworkers         Stable\n", "") == tool(share_groups, "--list", "--state")


def test_a_share_group_at_work_is_left_alone(tool, at_work):
    """Are moving and deleting refused while it has members?"""
    where = ("--group", "workers")
    moved = tool(share_groups, "--reset-offsets", *where, "--topic", "jobs", "--to-earliest", "--execute")
    deleted = tool(share_groups, "--delete", *where, "--group", "idle")

    assert (1, "", "Share group 'workers' is not empty.\nStop its members first, then try again.\n") == moved
    assert 1 == deleted[0]
    assert "\nError: Deletion of some share groups failed:\n" in deleted[1]
    assert (
        "* Group 'workers' could not be deleted due to: org.apache.kafka.common.errors.GroupNotEmptyException: "
        "Share group 'workers' is not EMPTY.\n"
    ) in deleted[1]
    assert "java.lang.IllegalArgumentException: Group 'idle' is not a share group.\n" in deleted[1]


def test_an_empty_share_group_is_moved_and_deleted(tool, at_work, beat):
    """Can a group without members be sent elsewhere, forget a topic and be deleted?"""
    beat(-1)
    plan = (
        "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\n"
        "workers         jobs            0          0\nworkers         jobs            1          0\n"
    )
    where = ("--group", "workers")

    assert (0, plan, "") == tool(
        share_groups, "--reset-offsets", *where, "--topic", "jobs", "--to-earliest", "--execute"
    )
    code, out, _ = tool(share_groups, "--describe", *where, "--output", "json")
    assert (0, [0, 0]) == (code, [row["startOffset"] for row in json.loads(out)])
    forgotten = tool(share_groups, "--delete-offsets", *where, "--topic", "jobs")
    assert (0, "\nTOPIC           STATUS\njobs            Successful\n", "") == forgotten
    deleted = tool(share_groups, "--delete", *where)
    assert (0, "Deletion of requested share groups ('workers') was successful.\n", "") == deleted


def test_an_unknown_share_group(tool, beat):
    """Is it said in Kafka's words that there is none, or that it is a group of another kind?"""
    failed = "\nError: Executing share group command failed due to "
    code, out, _ = tool(share_groups, "--describe", "--group", "nobody")
    assert (1, True) == (code, out.startswith(f"{failed}org.apache.kafka.common.errors.GroupIdNotFoundException: "))
    assert 1 == tool(share_groups, "--describe", "--group", "idle")[0]

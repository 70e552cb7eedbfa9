"""kafka-transactions against a broker in this process, with live transactional producers."""

import json
import time

import confluent_kafka
import pytest

from clients.quick_groups import QUICK_GROUPS
from hanging import leave_hanging
from headrace.cli.transactions import main
from wire_client import WireClient

TIMEOUT_S = 30


@pytest.fixture
def headrace_settings():
    """A broker that does not verify transactions, so that one can be left hanging."""
    return QUICK_GROUPS | {"transaction.partition.verification.enable": "false"}


@pytest.fixture
def tool(headrace_cluster, capsys, monkeypatch, tmp_path):
    """Runs the tool; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    with WireClient(headrace_cluster.port) as wire:
        wire.create_topic("trucks", partitions=2)

    def run(*arguments):
        code = main(["--bootstrap-server", headrace_cluster.bootstrap, *map(str, arguments)], "kafka-transactions")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def document(tool):
    """Runs the tool and gives its result as data."""

    def run(*arguments):
        code, out, err = tool(*arguments, "--output", "json")
        assert (0, "") == (code, err)
        return json.loads(out)

    return run


@pytest.fixture
def producer(headrace_cluster, tool):
    """A producer with a transaction open on the first partition."""
    one = confluent_kafka.Producer(
        {"bootstrap.servers": headrace_cluster.bootstrap, "transactional.id": "mover", "log_level": 2}
    )
    one.init_transactions(TIMEOUT_S)
    one.begin_transaction()
    one.produce("trucks", "x", partition=0)
    one.flush(TIMEOUT_S)
    return one


def test_transactions_are_listed(tool, producer):
    """Is the table Kafka's, and do the filters filter?"""
    heading = "TransactionalId\tCoordinator\tProducerId\tTransactionState\t\n"
    row = "mover          \t1          \t0         \tOngoing         \t\n"

    assert (0, heading + row, "") == tool("list")
    assert (0, heading + row, "") == tool("list", "--transactional-id-pattern", "mo.*")
    assert (0, heading, "") == tool("list", "--transactional-id-pattern", "other.*")
    assert (0, heading, "") == tool("list", "--duration-filter", 100_000_000)


def test_a_transaction_is_described(document, producer):
    """Are its state, its start and its partitions told, before and after its end?"""
    (open_one,) = document("describe", "--transactional-id", "mover")
    producer.commit_transaction(TIMEOUT_S)
    end = time.monotonic() + TIMEOUT_S
    # The commit is answered when it is decided; the markers follow.
    while (ended := document("describe", "--transactional-id", "mover")[0])["transactionState"] == "PrepareCommit":
        assert time.monotonic() < end, "the transaction is not completed"

    assert ("Ongoing", "trucks-0") == (open_one["transactionState"], open_one["topicPartitions"])
    assert open_one["transactionDurationMs"] >= 0
    assert ended["transactionState"] == "CompleteCommit"


def test_an_unknown_transactional_id(tool):
    """Is it refused in Kafka's words, on the error stream?"""
    expected = (
        "Failed to describe transaction state of transactional-id `nobody`: DescribeTransactions request for "
        "transactionalId `nobody` failed because the ID could not be found. Enable debug logging for additional detail."
    )

    code, out, err = tool("describe", "--transactional-id", "nobody")

    assert (1, "", expected) == (code, out, err.splitlines()[0])


def test_a_transaction_is_aborted(tool, document, producer):
    """Can an open transaction be ended by where it starts, and is one that does not exist refused?"""
    where = ("--topic", "trucks", "--partition", 0)
    (before,) = document("describe-producers", *where)
    absent = tool("abort", *where, "--start-offset", 77)
    done = tool("abort", *where, "--start-offset", 0)
    (after,) = document("describe-producers", *where)

    assert (0, None) == (before["currentTransactionStartOffset"], after["currentTransactionStartOffset"])
    expected = "Could not find any open transactions starting at offset 77 on partition trucks-0"
    assert (1, "", expected) == (*absent[:2], absent[2].splitlines()[0])
    assert (0, "", "") == done


def test_a_transaction_is_terminated_by_force(tool, document, producer):
    """Does it end for its coordinator too, under Kafka's name of the command and ours?"""
    assert (0, "", "") == tool("forceTerminateTransaction", "--transactionalId", "mover")
    assert "Empty" == document("describe", "--transactional-id", "mover")[0]["transactionState"]
    assert (0, "", "") == tool("force-terminate", "--transactional-id", "mover")
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(TIMEOUT_S)


def test_what_hangs_is_found_and_ended(tool, document, headrace_cluster):
    """Is a transaction found that no coordinator knows, and does aborting it help?"""
    with WireClient(headrace_cluster.port) as wire:
        leave_hanging(wire, "trucks", 1, 4711)
    search = ("find-hanging", "--topic", "trucks", "--max-transaction-timeout", 0)
    code, out, err = tool(*search)
    _, row = out.splitlines()

    assert (0, "`abort` with the topic, the partition and the start offset ends one of them.\n") == (code, err)
    assert ["trucks", "1", "4711", "0", "-1", "0"] == row.split()[:6]
    assert (0, "", "") == tool("abort", "--topic", "trucks", "--partition", 1, "--start-offset", 0)
    assert [] == document(*search)


def test_what_a_coordinator_knows_does_not_hang(tool, producer):
    """Is a transaction that its coordinator knows no hanging one, whatever its age?"""
    heading = (
        "Topic\tPartition\tProducerId\tProducerEpoch\tCoordinatorEpoch\tStartOffset\tLastTimestamp\tDuration(min)\t\n"
    )

    assert (0, heading, "") == tool("find-hanging", "--topic", "trucks", "--max-transaction-timeout", 0)
    assert (0, heading, "") == tool("find-hanging", "--broker-id", 1, "--max-transaction-timeout", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "kafka-transactions.sh: error: too few arguments"),
        (["describe"], "kafka-transactions.sh: error: argument --transactional-id is required"),
        (["stop"], "kafka-transactions.sh: error: invalid choice:  'stop' (choose from 'list', 'describe',"),
        (["find-hanging"], "The `find-hanging` command requires either --topic or --broker-id to limit the scope"),
        (["find-hanging", "--broker-id", "1", "--partition", "0"], "The --partition argument requires --topic to be"),
        (["abort", "--topic", "t", "--partition", "0"], "The transaction to abort must be identified either with"),
        (
            ["abort", "--topic", "t", "--partition", "0", "--producer-id", "1"],
            "Missing required argument --producer-epoch",
        ),
    ],
)
def test_mistakes_are_refused(tool, arguments, message):
    """Does each end in Kafka's sentence and a code of 1?"""
    code, out, err = tool(*arguments)

    assert (1, "") == (code, out)
    assert err.startswith(message)

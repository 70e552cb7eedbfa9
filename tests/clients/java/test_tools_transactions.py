"""Our kafka-transactions and Kafka's own, asked the same about the same live producers.

The brokers do not verify transactions, as brokers before 3.6 did not, so that one can be left hanging.
"""

import pytest

from clients.java.live_clients import until
from clients.java.tool_pairs import ToolPair
from clients.quick_groups import QUICK_GROUPS
from hanging import leave_hanging
from headrace.testing.broker_process import HeadraceProcess
from headrace.testing.peer import KafkaPeer
from wire_client import WireClient

DURATION = r"\t\d+ *\t(?=[^\t]*\t\n)"
"""How long a transaction has run: the last column but one of `describe`."""


@pytest.fixture(scope="module", params=[HeadraceProcess, KafkaPeer], ids=["headrace", "kafka"])
def broker(java, request, tmp_path_factory):
    """A running broker of each kind."""
    settings = QUICK_GROUPS | {"transaction.partition.verification.enable": "false"}
    with request.param(tmp_path_factory.mktemp("tools") / "broker", settings=settings) as running:
        yield running


@pytest.fixture
def pair(java, broker, capsys):
    """Both tools."""
    return ToolPair(java, broker.bootstrap, capsys, "transactions", "org.apache.kafka.tools.TransactionsCommand")


@pytest.fixture
def opened(transactor, group, group_admin, topic):
    """A topic with a transaction that is open on two of its partitions, and one that is done."""
    name = topic(partitions=3)
    done, producer = transactor(f"{group}-done"), transactor(group, "transaction.timeout.ms=60000")
    for one in (done, producer):
        assert (one.init(), one.begin()) == ("ok", "ok")
        one.send(f"{name}-0", "x")
    producer.send(f"{name}-2", "y")
    assert done.commit() == "ok"
    # Its markers are written after the answer.
    until(lambda: group_admin("transactions")[f"{group}-done"], lambda state: state == "CompleteCommit", "it is done")
    return name


def test_transactions_are_shown_alike(pair, opened, group):
    """Are lists, descriptions and producers the same?"""
    for how in ((), ("--duration-filter", 0), ("--duration-filter", 10**9), ("--transactional-id-pattern", "test.*")):
        assert pair.alike("list", *how) == 0
    for transactional_id in (group, f"{group}-done"):
        assert pair.alike("describe", "--transactional-id", transactional_id, without=DURATION) == 0
    for partition in range(3):
        where = ("--topic", opened, "--partition", partition)
        assert (
            pair.alike("describe-producers", *where) == pair.alike("describe-producers", *where, "--broker-id", 1) == 0
        )
    for scope in (("--topic", opened), ("--topic", opened, "--partition", 2), ("--broker-id", 1)):
        assert pair.alike("find-hanging", *scope, "--max-transaction-timeout", 0) == 0


def test_what_hangs_is_found_alike(pair, broker, topic):
    """Is a transaction that no coordinator knows found by both, and gone once ours has aborted it?"""
    name = topic(partitions=3)
    with WireClient(broker.port) as wire:
        for partition in range(3):
            for producer_id in (4711, 20):
                leave_hanging(wire, name, partition, producer_id)
    # A producer's last timestamp is its batch's on Kafka, the time of the append on Headrace: any age will do here.
    search = ("find-hanging", "--topic", name, "--max-transaction-timeout", 0)

    assert pair.alike(*search) == pair.alike(*search, "--broker-id", 1) == pair.alike(*search, "--partition", 1) == 0
    assert pair.theirs(*search).out.count(name) == 6
    assert (0, "", "") == pair.ours("abort", "--topic", name, "--partition", 0, "--start-offset", 0)
    typed = ("--producer-id", 20, "--producer-epoch", 0, "--coordinator-epoch", -1)
    assert (0, "", "") == pair.ours("abort", "--topic", name, "--partition", 0, *typed)
    assert pair.alike(*search) == 0
    assert pair.theirs(*search).out.count(name) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "--transactional-id", "nobody"),
        ("list", "--transactional-id-pattern", "("),
        ("find-hanging",),
        ("find-hanging", "--broker-id", "1", "--partition", "0"),
        ("find-hanging", "--topic", "nowhere"),
        ("abort", "--topic", "nowhere", "--partition", "0"),
        ("abort", "--topic", "nowhere", "--partition", "0", "--producer-id", "1"),
        ("abort", "--topic", "nowhere", "--partition", "0", "--producer-id", "1", "--producer-epoch", "0"),
    ],
    ids=" ".join,
)
def test_refusals_are_alike(pair, arguments):
    """Is the first line on the error stream the same?"""
    theirs, (code, out, err) = pair.theirs(*arguments), pair.ours(*arguments)

    assert (theirs.code, theirs.out) == (code, out) == (1, "")
    assert theirs.err.splitlines()[0] == err.splitlines()[0]


def test_a_transaction_left_behind_is_found_and_aborted_alike(pair, opened, group):
    """Does a wrong place get the same refusal from both, and does our abort end what Kafka's tool then sees ended?"""
    where = ("--topic", opened, "--partition", 0)
    wrong = ("abort", *where, "--start-offset", 77)
    assert pair.theirs(*wrong).err.splitlines()[0] == pair.ours(*wrong)[2].splitlines()[0]

    assert (0, "", "") == pair.ours("abort", *where, "--start-offset", 1)
    assert pair.alike("describe-producers", *where) == 0
    assert pair.theirs("describe-producers", *where).out.count("None") == 2
    assert (0, "", "") == pair.ours("force-terminate", "--transactional-id", group)
    assert pair.alike("describe", "--transactional-id", group, without=DURATION) == 0
    assert "Ongoing" not in pair.theirs("describe", "--transactional-id", group).out

"""Hostile requests about groups and transactions: Kafka's code within a second, nothing changed, nobody disturbed."""

import contextlib
import random
import struct
import time
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.broker.dispatch import load_apis
from headrace.model.errors import ErrorCode
from headrace.testing.kafka_jars import PeerUnavailable, kafka_jars
from headrace.testing.peer import KafkaPeer
from headrace.wire.apis import APIS
from headrace.wire.codec import decode_response
from headrace.wire.header import parse_response_header
from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequestProtocol
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from hostile.group_cases import CASES as OLDER_CASES
from hostile.group_fuzz import KEYS, WAITING, Pools, framed, some_request
from hostile.group_scene import (
    SESSION_MS,
    Scene,
    add_partitions,
    ask_until_ready,
    beat,
    codes_of,
    commit,
    fetch_offsets,
    joining,
    newcomer,
    of_producer,
    set_the_scene,
    txn_commit,
)
from hostile.newer_cases import NEWER_CASES
from wire_client import WireClient

pytestmark = pytest.mark.slow

CASES = {**OLDER_CASES, **NEWER_CASES}
SOON_S = 1.0
PATIENCE_S = 0.02
MIB = 1 << 20
CATASTROPHES = ("(a+)+$", "(a|aa)+$", "(.*)*x", "((a*)*)*b", "(a?){60}a{60}", "^(([a-z])+.)+[A-Z]([a-z])+$")


@pytest.fixture(scope="module")
def scene(target):
    """A topic, groups and a producer that the requests are about."""
    return new_scene(target)


@pytest.fixture
def own_scene(target):
    """The same for one test alone, which may leave its mark."""
    return new_scene(target)


def new_scene(target):
    """Set a scene on a topic of its own."""
    topic = f"scene-{uuid4().hex[:8]}"
    with WireClient(target.port) as client:
        assert client.create_topic(topic).error_code == 0
        return set_the_scene(client, topic)


@pytest.fixture
def bounded(target):
    """At the end of the test the broker must not occupy much more than at its start."""
    before = target.memory().anonymous_bytes
    yield
    assert target.memory().anonymous_bytes - before < 64 * MIB


def state_of(client: WireClient, scene: Scene) -> list[Any]:
    """All that a hostile request could have changed of the scene; the members show that they are there."""
    alive = HeartbeatRequest(group_id=scene.classic, generation_id=scene.generation, member_id=scene.classic_member)
    assert client.ask("Heartbeat", 4, alive).error_code == 0
    assert client.ask("ConsumerGroupHeartbeat", 1, beat(scene)).error_code == 0
    asked = (
        ("DescribeGroups", 6, DescribeGroupsRequest(groups=(scene.classic,))),
        ("ConsumerGroupDescribe", 1, ConsumerGroupDescribeRequest(group_ids=(scene.consumer,))),
        ("OffsetFetch", 9, fetch_offsets(scene.classic, scene.topic)),
        ("OffsetFetch", 9, fetch_offsets(scene.consumer, scene.topic)),
        ("DescribeTransactions", 0, DescribeTransactionsRequest(transactional_ids=(scene.transactional_id,))),
    )
    answers = [client.ask(*question) for question in asked]
    assert [codes_of(answer) for answer in answers] == [set()] * len(asked)
    return answers


def names_of_all(client: WireClient) -> set[str]:
    """Groups and transactions that are there, of whomever: what other tests left may go at any time."""
    groups = client.ask("ListGroups", 5, ListGroupsRequest()).groups
    transactions = client.ask("ListTransactions", 1, ListTransactionsRequest()).transaction_states
    return {one.group_id for one in groups} | {one.transactional_id for one in transactions}


def ask_soon(port: int, api: str, version: int, request: Any) -> Any:
    """The answer, which must come within a second."""
    with WireClient(port) as client:
        begin = time.monotonic()
        answer = client.ask(api, version, request)
        assert time.monotonic() - begin < SOON_S
        return answer


@pytest.mark.parametrize("name", CASES)
def test_refused(target, scene, guarded, name):
    """Is the request refused with Kafka's code within a second, and is everything as it was?"""
    case = CASES[name]
    with WireClient(target.port) as client:
        before, names = state_of(client, scene), names_of_all(client)

        answer = ask_soon(target.port, case.api, case.version, case.request(scene))

        assert sorted(case.codes) == sorted(code.name for code in codes_of(answer))
        assert before == state_of(client, scene)
        assert set() == names_of_all(client) - names


@pytest.mark.java
def test_refused_by_kafka(tmp_path):
    """Are the codes of the table those of Apache Kafka?"""
    try:
        kafka_jars()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    quick = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
    with KafkaPeer(tmp_path / "kafka", settings=quick) as broker, WireClient(broker.port) as client:
        assert client.create_topic("scene").error_code == 0
        scene = set_the_scene(client, "scene")
        found = {
            name: sorted(code.name for code in codes_of(client.ask(case.api, case.version, case.request(scene))))
            for name, case in CASES.items()
        }
    assert {name: sorted(case.codes) for name, case in CASES.items()} == found


def test_offsets_of_an_open_transaction(target, own_scene, guarded):
    """Is a transaction's commit of offsets held against the group's members and generation, and gone at its end?"""
    with WireClient(target.port) as client:
        before = state_of(client, own_scene)
        assert codes_of(ask_soon(target.port, "AddPartitionsToTxn", 3, add_partitions(own_scene))) == set()
        wrong = {"UNKNOWN_MEMBER_ID": {"member_id": "x"}, "ILLEGAL_GENERATION": {"generation_id": 0}}
        for code, change in wrong.items():
            # Version 5 needs no AddOffsetsToTxn before it.
            answer = ask_soon(target.port, "TxnOffsetCommit", 5, txn_commit(own_scene, **change))
            assert [code] == [found.name for found in codes_of(answer)]
        end = of_producer(EndTxnRequest, own_scene, committed=False)
        assert ask_until_ready(client, "EndTxn", 4, end).error_code == 0
        after = state_of(client, own_scene)

    assert before[:4] == after[:4]


@pytest.mark.parametrize("pattern", CATASTROPHES)
def test_catastrophic_patterns(target, neighbour, scene, guarded, pattern):
    """Does a pattern that costs others an age cost us nothing, whatever the topics are called?"""
    long_name = f"{'a' * 120}-{uuid4().hex[:6]}"
    with WireClient(target.port) as client:
        assert client.create_topic(long_name).error_code == 0
    request = newcomer(
        scene,
        group_id=f"patterns-{uuid4()}",
        member_id=str(uuid4()),
        subscribed_topic_names=None,
        subscribed_topic_regex=pattern,
    )

    answer = ask_soon(target.port, "ConsumerGroupHeartbeat", 1, request)

    assert codes_of(answer) <= {ErrorCode.INVALID_REGULAR_EXPRESSION}
    if answer.error_code == 0:
        leave = ConsumerGroupHeartbeatRequest(group_id=request.group_id, member_id=request.member_id, member_epoch=-1)
        assert ask_soon(target.port, "ConsumerGroupHeartbeat", 1, leave).error_code == 0
    assert ask_soon(target.port, "ListTransactions", 2, ListTransactionsRequest(transactional_id_pattern=pattern))


def test_oversized_names_and_metadata(target, neighbour, scene, guarded):
    """Do names and metadata as long as the protocol lets them be cost no more than they are, and no time?"""
    before = target.memory().anonymous_bytes
    long_name = "x" * 32_000
    huge = JoinGroupRequestProtocol(name="range", metadata=bytes(20 * MIB))
    for api, version, request in (
        ("OffsetCommit", 9, commit(long_name, topic=scene.topic, metadata="x" * 4_096)),
        ("OffsetCommit", 9, commit("metadata", topic=scene.topic, metadata="x" * 32_000)),
        ("JoinGroup", 9, joining(long_name)),
        ("JoinGroup", 9, joining(scene.classic, protocols=(huge,))),
        ("ConsumerGroupHeartbeat", 1, newcomer(scene, group_id=long_name, member_id=long_name, rack_id=long_name)),
        ("ListGroups", 5, ListGroupsRequest(states_filter=(long_name,) * 20)),
        ("DescribeGroups", 6, DescribeGroupsRequest(groups=(long_name,) * 20)),
    ):
        ask_soon(target.port, api, version, request)

    assert target.memory().anonymous_bytes - before < 96 * MIB


def test_flood_of_newcomers(target, neighbour, scene, guarded):
    """Do thousands of joins that are never followed up, in as many groups, cost little, and others no time?"""
    before = target.memory().anonymous_bytes
    with WireClient(target.port) as client:
        for number in range(3_000):
            answer = client.ask("JoinGroup", 9, joining(f"flood-{number}", session_timeout_ms=6_000))
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        for _ in range(3_000):
            client.ask("JoinGroup", 9, joining("flood", session_timeout_ms=6_000))

    assert target.memory().anonymous_bytes - before < 64 * MIB


def test_hang_up_while_joining(target, neighbour, scene, guarded):
    """Is a join whose client hangs up forgotten in time, and does the next one get its answer?"""
    group = f"hang-up-{uuid4()}"
    with WireClient(target.port) as client:
        for _ in range(200):
            with WireClient(target.port) as leaver:
                leaver.send("JoinGroup", 3, joining(group, session_timeout_ms=SESSION_MS))
        assert codes_of(client.ask("DescribeGroups", 6, DescribeGroupsRequest(groups=(group,)))) <= {
            ErrorCode.GROUP_ID_NOT_FOUND
        }


steps = st.lists(
    st.tuples(
        st.sampled_from([key for key in KEYS if (api := load_apis().get(key)) and api.on_brokers]),
        st.integers(0, 2**32),
    ),
    min_size=1,
    max_size=30,
)


@given(steps=steps)
@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_any_order(target, own_scene, guarded, bounded, steps):
    """Is every well-formed request answered within a second, in whatever order they come, and the broker alive?"""
    topic = f"fuzz-{own_scene.topic}"
    with WireClient(target.port) as client:
        client.create_topic(topic)
        topic_id = client.describe_topic(topic).topic_id
    pools = Pools(random.Random(0), topic, topic_id)
    for key, number in steps:
        chance = random.Random(number)
        pools._chance = chance
        api = load_apis()[key]
        version = chance.randint(api.low, api.high)
        request = some_request(key, version, chance, pools)
        answer = answered_soon(target.port, key, version, request)
        if answer is not None:
            pools.learn(answer)
    with WireClient(target.port) as client:
        assert client.describe_topic(guarded).error_code == 0


def answered_soon(port: int, key: int, version: int, request: Any) -> Any:
    """The answer within a second, None if the request may wait and does."""
    with WireClient(port) as client:
        client._socket.settimeout(PATIENCE_S if key in WAITING else SOON_S)
        client.send_frame(framed(key, version, request))
        try:
            frame = client.receive_frame()
        except TimeoutError:
            assert key in WAITING, f"{APIS[key].name} v{version} was not answered: {request}"
            return None
    with contextlib.suppress(struct.error):
        _, body = parse_response_header(key, version, frame)
        return decode_response(key, version, frame, body)
    raise AssertionError(f"{APIS[key].name} v{version}: the answer cannot be read")

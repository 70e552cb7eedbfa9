"""DescribeCluster."""

import pytest

from headrace.broker.handlers.api60_describe_cluster import API
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_cluster import DescribeClusterRequest

BROKERS, CONTROLLERS = 1, 2
ALL_CLUSTER_OPERATIONS = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_cluster_is_described(open_desk, version):
    """Does every version tell the cluster's id and where its broker is reached?"""
    desk = open_desk({"broker.rack": "r1"})

    answer = desk.ask(API, DescribeClusterRequest(), version=version)

    (broker,) = answer.brokers
    assert answer.error_code == 0
    assert (answer.cluster_id, answer.controller_id) == (desk.broker.cluster_id, 1)
    assert (broker.broker_id, broker.host, broker.rack, broker.is_fenced) == (1, "127.0.0.1", "r1", False)
    assert broker.port == desk.broker.endpoints["PLAINTEXT"].port


def test_operations_are_told_where_asked_for(desk):
    """Does everybody hear that they may do everything, if they ask?"""
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)

    assert desk.ask(API, asked).cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    assert desk.ask(API, DescribeClusterRequest()).cluster_authorized_operations == -(2**31)


def test_controllers_are_told_at_their_own_listener(desk):
    """Does a tool that is given --bootstrap-controller hear where the controller is?"""
    answer = desk.ask(API, DescribeClusterRequest(endpoint_type=CONTROLLERS), listener="CONTROLLER")

    (controller,) = answer.brokers
    ports = {listener.name: listener.port for listener in desk.broker.listeners}
    assert API.controller
    assert (answer.error_code, answer.endpoint_type, answer.controller_id) == (0, CONTROLLERS, 1)
    assert (controller.broker_id, controller.host, controller.port) == (1, "127.0.0.1", ports["CONTROLLER"])


@pytest.mark.parametrize(
    ("listener", "kind", "code", "message"),
    [
        (
            "PLAINTEXT",
            CONTROLLERS,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (
            "CONTROLLER",
            BROKERS,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER",
        ),
        ("PLAINTEXT", 3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
    ],
)
def test_question_at_the_wrong_door_is_refused(desk, listener, kind, code, message):
    """Is one who asks for brokers at a controller, or the other way round, told so?"""
    answer = desk.ask(API, DescribeClusterRequest(endpoint_type=kind), listener=listener)

    assert (answer.error_code, answer.error_message, answer.brokers) == (code, message, ())


def test_first_version_has_no_word_for_endpoints(desk):
    """Is a version that knows nothing of endpoint types refused with an error it knows?"""
    answer = desk.ask(API, DescribeClusterRequest(), version=0, listener="CONTROLLER")

    assert answer.error_code == ErrorCode.INVALID_REQUEST

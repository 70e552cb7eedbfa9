"""The engine's errors in our words."""

import pytest

from headrace.client.engine import EngineError, Troubles, fault_of
from headrace.client.fault import ClientFault, NoBroker, NotAuthenticated
from headrace.model.errors import ErrorCode

AFTER = "(after 303ms in state AUTH_REQ)"


@pytest.mark.parametrize(
    ("code", "text", "kind", "sentence"),
    [
        (
            EngineError._AUTHENTICATION,
            f"sasl_ssl://b:1/bootstrap: SASL authentication error: Invalid password {AFTER}",
            NotAuthenticated,
            "b:1 refused the login: Invalid password. Check sasl_mechanism, user name, and password or token.",
        ),
        (
            EngineError._TRANSPORT,
            (
                "ssl://b:1/bootstrap: Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate: "
                f"SSL alert number 42 {AFTER}"
            ),
            NotAuthenticated,
            (
                "b:1 does not accept our certificate, or wants one: alert bad certificate. "
                "Give one that it trusts and that has not expired: ssl_certfile and ssl_keyfile."
            ),
        ),
        (
            EngineError._TRANSPORT,
            "b:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused",
            NoBroker,
            (
                "b:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused. "
                "Check host, port and security_protocol; is the broker running?"
            ),
        ),
    ],
)
def test_faults(code, text, kind, sentence):
    """Is an error of the engine one of ours, told without what the engine puts around it?"""
    found = fault_of(EngineError(code, text))

    assert kind is type(found)
    assert sentence == str(found)


def test_troubles():
    """Are refusals kept apart from lost connections, and both forgotten when somebody answers?"""
    troubles = Troubles()
    troubles.note(EngineError(EngineError._TRANSPORT, "gone"))
    troubles.note(EngineError(EngineError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    troubles.note(EngineError(EngineError._SSL, "no handshake"))

    assert isinstance(troubles.network, ClientFault)
    assert "gone" == troubles.network.problem
    assert isinstance(troubles.login, NotAuthenticated)
    troubles.clear()
    assert (None, None) == (troubles.login, troubles.network)


@pytest.mark.parametrize("code", [EngineError._UNKNOWN_TOPIC, EngineError._UNKNOWN_PARTITION])
def test_what_is_not_there(code):
    """Is a topic or partition that only the engine misses the same as one that a broker misses?"""
    assert fault_of(EngineError(code)).code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

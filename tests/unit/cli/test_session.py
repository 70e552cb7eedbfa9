"""A run of a tool: the settings it is given."""

from headrace.cli.session import Session
from headrace.cli.tool import Values


def session_with(file, *properties):
    """A tool's run with a file of settings and some more typed."""
    given = {"bootstrap-server": ["localhost:9092"], "command-config": [str(file)]}
    return Session(Values(given=given | {"command-property": list(properties)}), "kafka-topics")


def test_settings_without_effect_are_said_once(tmp_path, capsys):
    """Does a tool say which settings nothing comes of, once and on standard error, and go on?"""
    file = tmp_path / "client.properties"
    file.write_text("securty.protocol=SSL\ninterceptor.classes=a.B\nkey.serializer=a.StringSerializer\nacks=1\n")
    session = session_with(file, "clientid=x")

    assert "PLAINTEXT" == session.connection().security_protocol
    assert {"acks": "1", "clientid": "x"}.items() <= session.properties().items()
    told = capsys.readouterr()
    assert "" == told.out
    assert [
        "Warning: Only Java's clients know these, so they are without effect: interceptor.classes.",
        "Warning: securty.protocol is not a known setting; did you mean security.protocol?",
        "Warning: clientid is not a known setting; did you mean client.id?",
    ] == told.err.splitlines()


def test_what_a_tool_adds_is_its_own(tmp_path):
    """Do changes that a tool makes to its settings stay with it?"""
    file = tmp_path / "client.properties"
    file.write_text("acks=1\n")
    session = session_with(file)
    session.properties()["group.id"] = "mine"

    assert {"acks": "1"} == session.properties()

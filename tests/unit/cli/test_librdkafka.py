"""Java's settings as librdkafka's."""

import pytest

from headrace.cli.librdkafka import Complaints, engine, engine_settings, make
from headrace.cli.session import Failure, Session
from headrace.cli.tool import Values

pytest.importorskip("confluent_kafka")


def settings_of(properties, tmp_path):
    """The settings of librdkafka for a properties file of a Java client."""
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    values = Values(given={"bootstrap-server": ["localhost:9092"], "command-config": [str(file)]})
    session = Session(values, "tool")
    return engine_settings(session, session.properties())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"fetch.max.wait.ms": "7"}, {"fetch.wait.max.ms": "7"}),
        ({"buffer.memory": "2048"}, {"queue.buffering.max.kbytes": "2"}),
        ({"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
        (
            {"partition.assignment.strategy": "a.b.RangeAssignor, a.b.CooperativeStickyAssignor"},
            {"partition.assignment.strategy": "range,cooperative-sticky"},
        ),
        ({"key.serializer": "a.b.StringSerializer", "max.poll.records": "5"}, {}),
        ({"interceptor.classes": "a.B", "partitioner.class": "a.C", "metrics.num.samples": "3", "lingr.ms": "5"}, {}),
        ({"linger.ms": "5"}, {"linger.ms": "5"}),
    ],
)
def test_names_and_values(given, expected, tmp_path):
    """Are settings with another name or value translated, those without a meaning left out, others kept?"""
    plain = settings_of({}, tmp_path)

    assert settings_of(given, tmp_path) == plain | expected


def test_credentials(tmp_path):
    """Do credentials in Java's form arrive?"""
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret";'
    found = settings_of(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}, tmp_path
    )

    names = ("security.protocol", "sasl.mechanisms", "sasl.username", "sasl.password")
    assert [found[name] for name in names] == ["SASL_PLAINTEXT", "PLAIN", "me", "secret"]
    assert "sasl.jaas.config" not in found


def test_unknown_names_are_left_out_and_said(capsys, tmp_path):
    """Does a client come up although a setting is unknown, and is a wrong value refused?"""
    known = settings_of({}, tmp_path)
    make(engine().Producer, known | {"no.such.setting": "1"})

    assert capsys.readouterr().err == "The client does not know the setting no.such.setting; it is left out.\n"
    with pytest.raises(Failure, match="acks"):
        make(engine().Producer, known | {"acks": "maybe"})


def test_a_size_that_is_no_number(tmp_path):
    """Is a size that is no number a sentence and not a traceback?"""
    with pytest.raises(Failure, match=r"^buffer\.memory=much is not a number\.$"):
        settings_of({"buffer.memory": "much"}, tmp_path)


class Trouble:
    """An error of librdkafka's."""

    def __init__(self, text, *, fatal=False):
        self._text, self._fatal = text, fatal

    def str(self):
        return self._text

    def fatal(self):
        return self._fatal


def test_complaints_are_told_once(capsys):
    """Is the same complaint told once, whatever numbers are in it, and a fatal one remembered?"""
    complaints = Complaints()
    for trouble in (Trouble("down after 5ms"), Trouble("down after 17ms"), Trouble("fenced.", fatal=True)):
        complaints(trouble)

    assert capsys.readouterr().err == "down after 5ms.\nfenced.\n"
    assert complaints.fatal == "fenced."

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.settings.catalog import BROKER_SETTINGS
from headrace.settings.fault import ConfigFault
from headrace.settings.setting import Kind, Setting, Value, format_double
from headrace.settings.topic import TOPIC_SETTINGS

ALL = [*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values()]


def of_kind(kind: Kind, **fields: object) -> Setting:
    """A setting with nothing but a kind and what the test is about."""
    return Setting("x.y", "topic", kind, None, "", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, " TRUE ", True),
        (Kind.BOOLEAN, "false", False),
        (Kind.INT, "2147483647", 2147483647),
        (Kind.INT, "-2147483648", -2147483648),
        (Kind.INT, "+5", 5),
        (Kind.SHORT, "32767", 32767),
        (Kind.LONG, " 9223372036854775807 ", 2**63 - 1),
        (Kind.DOUBLE, "0.5", 0.5),
        (Kind.DOUBLE, "1e3", 1000.0),
        (Kind.DOUBLE, "5", 5.0),
        (Kind.DOUBLE, "2.5d", 2.5),
        (Kind.STRING, "  a b  ", "a b"),
        (Kind.LIST, "a , b,a", ("a", "b")),
        (Kind.LIST, "", ()),
        (Kind.CLASS, "org.example.X", "org.example.X"),
        (Kind.PASSWORD, "secret", "secret"),
    ],
)
def test_text_becomes_a_value(kind: Kind, text: str, value: Value) -> None:
    """Is text read as Kafka's ConfigDef reads it, spaces, signs and repeated list entries included?"""
    assert of_kind(kind).parse(text) == value


@pytest.mark.parametrize(
    ("setting", "text", "reason"),
    [
        (of_kind(Kind.BOOLEAN), "yes", "Expected value to be either true or false"),
        (of_kind(Kind.INT), "abc", "Not a number of type INT"),
        (of_kind(Kind.INT), "", "Not a number of type INT"),
        (of_kind(Kind.INT), "1_000", "Not a number of type INT"),
        (of_kind(Kind.INT), "٣", "Not a number of type INT"),
        (of_kind(Kind.INT), "1.0", "Not a number of type INT"),
        (of_kind(Kind.INT), "2147483648", "Not a number of type INT"),
        (of_kind(Kind.SHORT), "32768", "Not a number of type SHORT"),
        (of_kind(Kind.LONG), "9223372036854775808", "Not a number of type LONG"),
        (of_kind(Kind.LONG), "9" * 100_000, "Not a number of type LONG"),
        (of_kind(Kind.DOUBLE), "nan", "Not a number of type DOUBLE"),
        (of_kind(Kind.DOUBLE), "", "Not a number of type DOUBLE"),
        (of_kind(Kind.DOUBLE), "1_0.0", "Not a number of type DOUBLE"),
        (of_kind(Kind.INT, low=1), "0", "Value must be at least 1"),
        (of_kind(Kind.DOUBLE, low=0, high=1), "1.5", "Value must be no more than 1"),
        (of_kind(Kind.INT, low=1, high=9, also=-1), "0", "Value must be between 1 and 9 or equal to -1"),
        (of_kind(Kind.STRING, choices=("a", "b")), "c", "String must be one of: a, b"),
        (of_kind(Kind.STRING, choices=("a", "b")), "A", "String must be one of: a, b"),
        (of_kind(Kind.LIST, choices=("a", "b")), "a,c", "String must be one of: a, b"),
        (of_kind(Kind.LIST), "a,,b", "Values of a list must not be empty"),
        (of_kind(Kind.LIST, nonempty=True), " ", "Value must not be empty"),
    ],
)
def test_bad_text_is_refused_in_kafkas_words(setting: Setting, text: str, reason: str) -> None:
    """Does a refusal name the value, the setting and the reason, as Kafka's does?"""
    with pytest.raises(ConfigFault) as caught:
        setting.parse(text)

    assert caught.value.problem == f"Invalid value {text} for configuration x.y: {reason}"
    assert caught.value.remedy.startswith("Give it ")


@pytest.mark.parametrize(("text", "value"), [("-1", -1), ("1", 1), ("9", 9)])
def test_a_number_beside_the_bounds_is_allowed(text: str, value: int) -> None:
    """Is -1 a gzip level although the bounds are 1 to 9?"""
    assert TOPIC_SETTINGS["compression.gzip.level"].parse(text) == value


def test_choices_in_any_case() -> None:
    """Are words that Kafka takes in any case taken so?"""
    assert BROKER_SETTINGS["group.consumer.migration.policy"].parse("Upgrade") == "Upgrade"


def test_every_default_is_a_legal_value() -> None:
    """Does each default survive being printed and read again, so that a described config can be set?"""
    for setting in ALL:
        text = setting.format(setting.default)

        assert text is None or setting.parse(text) == setting.default, setting.name


def test_every_setting_has_one_sentence() -> None:
    """Does each row say what it is for?"""
    for setting in ALL:
        assert setting.doc.endswith("."), setting.name
        assert ". " not in setting.doc, setting.name
        assert setting.doc[0].isupper(), setting.name


def test_a_secret_is_never_shown() -> None:
    """Do neither printing nor a refusal give a password away?"""
    secret = of_kind(Kind.PASSWORD, nonempty=True)

    assert secret.sensitive
    assert secret.format("hunter2") is None
    with pytest.raises(ConfigFault) as caught:
        secret._replace(choices=("a",)).parse("hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012345, "1.2345E-4"),
        (-0.0001, "-1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (5e22, "5.0E22"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_are_printed_as_java_does(value: float, text: str) -> None:
    """Is a double shown as Kafka shows it?"""
    assert format_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_double_is_the_same_double(value: float) -> None:
    """Does no digit get lost on the way to Java's notation and back?"""
    assert of_kind(Kind.DOUBLE).parse(format_double(value)) == value

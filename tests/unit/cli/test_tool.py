"""What is typed after a tool's name, held against its table."""

import pytest

from headrace.cli.tool import Option, Tool, UsageError, exactly_one, not_together, read_options

TOOL = Tool(
    name="kafka-thing",
    summary="Does a thing.",
    options=(
        Option(name="topic", argument="name", help="A topic."),
        Option(name="config", argument="k=v", help="A setting.", is_repeatable=True),
        Option(name="state", argument="states", is_argument_optional=True, help="States."),
        Option(name="force", help="Do it."),
        Option(name="reader-property", argument="k=v", help="For the reader.", is_repeatable=True),
        Option(name="property", argument="k=v", help="Old.", replaced_by="reader-property", is_repeatable=True),
        Option(name="command-property", argument="k=v", takes_many=True, help="Many."),
        Option(name="kind", argument="a|b", choices=("a", "b"), default="a", help="A kind."),
    ),
)


def read(*words):
    """What the tool understands."""
    return read_options(TOOL, words)


def test_values_are_found_by_name():
    """Are values read from the next word, from behind the sign, and from defaults?"""
    values = read("--topic", "t", "--config=a=b=c", "--config", "d", "--force", "rest")
    assert (values.get("topic"), values.pairs("config"), values.has("force")) == ("t", {"a": "b=c", "d": ""}, True)
    assert (values.get("kind"), values.words) == ("a", ["rest"])


def test_one_dash_will_do():
    """Does -topic work, which people type and tutorials print?"""
    assert read("-topic", "t").get("topic") == "t"


def test_a_negative_number_is_a_value():
    """Is what follows an option its value, even if it begins with a dash?"""
    assert read("--topic", "-1").number("topic") == -1


@pytest.mark.parametrize(("words", "expected"), [(["--state"], None), (["--state", "empty"], "empty")])
def test_a_value_may_be_optional(words, expected):
    """May an option that can do without a value be followed by another option?"""
    values = read(*words, "--force")
    assert (values.has("state"), values.get("state"), values.has("force")) == (True, expected, True)


def test_some_options_take_all_that_follows():
    """Do the words up to the next option belong to one that takes many?"""
    values = read("--command-property", "a=1", "b=2", "--force")
    assert (values.pairs("command-property"), values.words) == ({"a": "1", "b": "2"}, [])


def test_an_old_name_works_with_kafkas_warning():
    """Is the old name's value found under the new one, and is the warning Kafka's?"""
    values = read("--property", "a=1")
    assert values.pairs("reader-property") == {"a": "1"}
    assert values.warnings == [
        "Warning: --property is deprecated and will be removed in a future version. Use --reader-property instead."
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--topc", "t"], "topc is not a recognized option; did you mean --topic?"),
        (["--top", "t"], "top is not a recognized option"),
        (["--zzz"], "zzz is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--force=yes"], "Option force does not take an argument"),
        (["--kind", "c"], "Cannot parse argument 'c' of option kind"),
        (["--topic", "a", "--topic", "b"], "Found multiple arguments for option topic"),
        (["--property", "a=1", "--reader-property", "b=2"], "can't be used with option"),
    ],
)
def test_what_does_not_fit_is_refused(words, message):
    """Is every mistake named, without guessing what was meant?"""
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        read(*words)


def test_exclusive_options_are_held_apart():
    """Do the refusals of none and of two carry Kafka's sentences?"""
    with pytest.raises(UsageError, match="exactly one"):
        exactly_one(read("--force", "--state"), ["force", "state"], "exactly one")
    with pytest.raises(UsageError, match=r'Option "\[force\]" can\'t be used with option "\[topic\]"'):
        not_together(read("--force", "--topic", "t"), "force", ["topic"])

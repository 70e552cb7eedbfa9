import pytest

from headrace.client.fault import BadOption
from headrace.client.records import TopicPartition
from headrace.spark.positions import (
    EARLIEST,
    LATEST,
    Kind,
    parse_assignment,
    parse_names,
    parse_offsets,
    parse_pattern,
    parse_timestamp,
    parse_timestamps,
)


def test_words():
    """Are the three words understood, in any case?"""
    assert [(Kind.EVERYWHERE, EARLIEST), (Kind.EVERYWHERE, LATEST), (Kind.GROUP, 0)] == [
        (found.kind, found.mark) for found in (parse_offsets("o", text) for text in ("earliest", " Latest ", "GROUP"))
    ]


def test_offsets_as_json():
    """Are offsets and marks read for each partition?"""
    found = parse_offsets("o", '{"t":{"0":23,"11":-1},"u":{"0":-2}}')

    assert {TopicPartition("t", 0): 23, TopicPartition("t", 11): -1, TopicPartition("u", 0): -2} == found.marks


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "[]",
        "7",
        '{"t":3}',
        '{"t":{"x":1}}',
        '{"t":{"0":-3}}',
        '{"t":{"0":true}}',
        '{"t":{"0":1.5}}',
        '{"t":{"0":null}}',
        '{"t":{"-1":5}}',
        '{"t":{"0":99999999999999999999}}',
        '{"t":{"0":1}',
    ],
)
def test_bad_offsets(text):
    """Is anything else refused with the name of the option and an example?"""
    with pytest.raises(BadOption, match=r'^startingOffsets .*\. Write {"topic":{"0":23,"1":-2}}: -2 is the earliest'):
        parse_offsets("startingOffsets", text)


def test_times():
    """Are times read, and negative ones refused?"""
    assert 17 == parse_timestamp("o", "17").mark
    assert {TopicPartition("t", 0): 5} == parse_timestamps("o", '{"t":{"0":5}}').marks
    for parse, text in ((parse_timestamp, "-5"), (parse_timestamp, "yesterday"), (parse_timestamps, '{"t":{"0":-1}}')):
        with pytest.raises(BadOption):
            parse("o", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("earliest", False), ("latest", True), ("group", False), ('{"t":{"0":5}}', False), ('{"t":{"0":5,"1":-1}}', True)],
)
def test_fleeting(text, expected):
    """Is it known which positions move while nobody looks?"""
    assert expected is parse_offsets("o", text).is_fleeting


def test_subscriptions():
    """Are names, patterns and partitions told apart, and what each wants?"""
    names, pattern = parse_names("o", "a, b,a"), parse_pattern("o", "tr.ck")
    some = parse_assignment("o", '{"a":[0,2]}')
    place = TopicPartition

    assert (("a", "b"), None, ("a",)) == (names.topics, pattern.topics, some.topics)
    assert [True, False] == [names.wants(place("a", 5)), names.wants(place("c", 0))]
    assert [True, False, False] == [pattern.wants(place(name, 0)) for name in ("truck", "trucks", "a-truck")]
    assert [True, False, False] == [some.wants(one) for one in (place("a", 2), place("a", 1), place("b", 0))]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"t":0}', '{"t":["0"]}', '{"t":[-1]}', '{"t":[true]}'])
def test_bad_assignments(text):
    """Is an assignment that names no partitions refused?"""
    with pytest.raises(BadOption, match=r'Write {"topic":\[0,1\]}'):
        parse_assignment("assign", text)


def test_bad_patterns():
    """Is a pattern that is none refused?"""
    for text in ("(", "", "*"):
        with pytest.raises(BadOption, match="subscribePattern"):
            parse_pattern("subscribePattern", text)

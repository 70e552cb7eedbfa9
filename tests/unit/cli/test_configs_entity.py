"""Whose settings kafka-configs is about, however it is typed."""

import pytest

from headrace.cli.configs import TOOL
from headrace.cli.configs_entity import entity_of
from headrace.cli.session import Failure
from headrace.cli.tool import read_options


def entity(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Kinds and names of what was typed."""
    found = entity_of(read_options(TOOL, line.split()))
    return found.kinds, found.names


@pytest.mark.parametrize(
    ("line", "kinds", "names"),
    [
        ("--describe --topic a", ("topics",), ("a",)),
        ("--describe --entity-type topics", ("topics",), ()),
        ("--describe --entity-type users --entity-default", ("users",), ("",)),
        ("--alter --user u --client c", ("clients", "users"), ("c", "u")),
        ("--alter --user u --client-defaults", ("users", "clients"), ("u", "")),
        (
            "--alter --entity-type users --entity-default --entity-type clients --entity-name c",
            ("users", "clients"),
            ("", "c"),
        ),
        (
            "--alter --entity-type clients --entity-name c --entity-type users --entity-default",
            ("clients", "users"),
            ("c", ""),
        ),
        ("--alter --broker-defaults", ("brokers",), ("",)),
        ("--describe --ip 127.0.0.1", ("ips",), ("127.0.0.1",)),
    ],
)
def test_names_belong_to_kinds_in_the_order_typed(line, kinds, names):
    """Are kinds and names paired as Kafka's tool pairs them?"""
    assert entity(line) == (kinds, names)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--describe", "At least one entity type"),
        ("--describe --entity-type x", "Invalid entity type x"),
        ("--describe --entity-type topics --entity-default", "--entity-default must not be specified with --describe"),
        ("--describe --entity-type broker-loggers", "An entity name must be specified with --describe"),
        ("--describe --entity-type users --entity-name a --entity-name b", "More entity names specified than"),
        ("--alter --entity-type users", "An entity-name or default entity must be specified"),
        ("--alter --entity-type topics", "An entity name must be specified with --alter of topics"),
        ("--alter --entity-type users --entity-type clients --entity-name a", "for every entity type"),
        ("--alter --topic a --entity-type users", "may be specified together"),
        ("--alter --user a --entity-type clients", "should not be used in conjunction with specific entity flags"),
        ("--describe --broker x", "must be a valid integer broker id, but it is: x"),
        ("--describe --ip no..address", "must be a valid IP or resolvable host, but it is: no..address"),
    ],
)
def test_what_cannot_be_meant(line, sentence):
    """Is it refused in Kafka's words?"""
    with pytest.raises(Failure) as refused:
        entity(line)
    assert sentence in refused.value.message

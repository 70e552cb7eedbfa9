"""The tables beside Apache Kafka 4.3.1, whose own definitions are kept in kafka-4.3.1.tsv."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.settings.catalog import BROKER_SETTINGS
from headrace.settings.group import GROUP_SETTINGS
from headrace.settings.setting import Setting, format_bound
from headrace.settings.tables.legacy import LEGACY
from headrace.settings.topic import TOPIC_SETTINGS

ORACLE = Path(__file__).parent / "kafka-4.3.1.tsv"

OWN_BROKER = {
    "flush.on.acks.all",
    "log.segment.preallocate.bytes",
    "max.decompressed.message.bytes",
    "metrics.listener",
    "producer.ids.max.per.partition",
    "request.first.bytes.timeout.ms",
    "request.frame.timeout.ms",
}
OWN_TOPIC = {"flush.on.acks.all", "max.decompressed.message.bytes", "segment.preallocate.bytes"}
ONLY_DYNAMIC = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
OF_PLUG_INS = {"super.users", "allow.everyone.if.no.acl.found"}
FINITE_HERE = {"max.connections": 8192, "max.connections.per.ip": 4096, "queued.max.request.bytes": 256 * 1024 * 1024}
RESTART_HERE = {"listeners", "listener.security.protocol.map"}


class Row(NamedTuple):
    scope: str
    name: str
    kind: str
    default: str
    validator: str
    importance: str
    mode: str
    internal: str


def oracle_rows() -> Iterator[Row]:
    """What Kafka says of each setting."""
    for line in ORACLE.read_text().splitlines():
        if not line.startswith(("#", "synonyms")):
            yield Row(*line.split("\t"))


def oracle_synonyms() -> dict[str, list[str]]:
    """Which broker settings Kafka takes a topic's or group's defaults from, with the factors."""
    lines = (line.split("\t") for line in ORACLE.read_text().splitlines() if line.startswith("synonyms"))
    return {name: synonyms.split() for _, name, synonyms in lines}


ROWS = list(oracle_rows())
SCOPES = {"broker": BROKER_SETTINGS, "topic": TOPIC_SETTINGS, "group": GROUP_SETTINGS}


def ours(row: Row) -> Setting:
    """Our row for one of Kafka's."""
    return SCOPES[row.scope][row.name]


def validator_of(setting: Setting) -> str:
    """Our bounds and choices, as Kafka's validators print themselves."""
    if setting.also is not None:
        return f"[{format_bound(setting.low)},...,{format_bound(setting.high)}] or {setting.also}"
    if setting.low is not None:
        high = f",{format_bound(setting.high)}" if setting.high is not None else ""
        return f"[{format_bound(setting.low)},...{high}]"
    if setting.choices:
        return ("(case insensitive) " if setting.any_case else "") + f"[{', '.join(setting.choices)}]"
    return "-"


NOT_IN_A_ROW = {
    "non-null string",
    "non-empty list",
    "non-empty string",
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    "[latest, earliest, by_duration:PnDTnHnMn.nS]",
}
"""Validators that are kept elsewhere: in `nonempty`, in topology.py, in topic.py and in group.py."""


def test_rows_are_kafkas() -> None:
    """Is each setting Kafka knows here with its type, bounds, importance and visibility?"""
    wrong = {}
    for row in ROWS:
        setting = ours(row)
        found = (setting.kind.name, validator_of(setting), setting.importance.upper(), setting.hidden)
        validator = "-" if row.validator in NOT_IN_A_ROW else row.validator
        if found != (row.kind, validator, row.importance, row.internal == "internal"):
            wrong[row.name] = found

    # Kafka takes any number for this one, even a negative one.
    assert wrong == {"internal.segment.bytes": ("INT", "[1,...]", "MEDIUM", True)}


def test_defaults_are_kafkas() -> None:
    """Is each default Kafka's, but for the limits that Kafka leaves open?"""
    wrong = {}
    for row in ROWS:
        setting = ours(row)
        expected = None if row.default in {"required", "unset"} else row.default.removeprefix("=")
        if setting.format(setting.default) != expected or setting.required != (row.default == "required"):
            wrong[row.name] = setting.default

    assert wrong == FINITE_HERE
    assert all("here finite" in BROKER_SETTINGS[name].doc for name in FINITE_HERE)


def test_modes_are_kafkas() -> None:
    """Can each broker setting change at run time as it can in Kafka, but for the ones that take a restart here?"""
    wrong = {row.name for row in ROWS if row.scope == "broker" and BROKER_SETTINGS[row.name].mode != row.mode}

    assert wrong == RESTART_HERE
    assert {BROKER_SETTINGS[name].mode for name in RESTART_HERE} == {"read-only"}


def test_nothing_is_missing_and_every_extra_is_meant() -> None:
    """Are the settings beside Kafka's exactly the ones we added?"""
    broker = {row.name for row in ROWS if row.scope == "broker"}
    topic = {row.name for row in ROWS if row.scope == "topic"}

    assert set(GROUP_SETTINGS) == {row.name for row in ROWS if row.scope == "group"}
    assert set(BROKER_SETTINGS) - broker == OWN_BROKER | ONLY_DYNAMIC | OF_PLUG_INS
    assert set(TOPIC_SETTINGS) - topic == OWN_TOPIC
    assert not broker - set(BROKER_SETTINGS)
    assert not topic - set(TOPIC_SETTINGS)


def test_our_own_settings_say_so() -> None:
    """Can a reader of the reference tell what is not in Kafka?"""
    for name in OWN_BROKER:
        assert re.search(r"\(not in Kafka( 4\.3)?\)", BROKER_SETTINGS[name].doc), name


def test_topics_and_groups_follow_the_broker_settings_kafka_names() -> None:
    """Does each of their settings take its default from the same broker settings, in the same order and units?"""
    found = {
        name: [f"{fallback.name}*{fallback.factor}" for fallback in setting.synonyms]
        for name, setting in (*TOPIC_SETTINGS.items(), *GROUP_SETTINGS.items())
        if setting.synonyms and name not in OWN_TOPIC
    }

    assert found == oracle_synonyms()


def test_every_fallback_is_a_broker_setting() -> None:
    """Does no chain lead to a name that is not there?"""
    for setting in (*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values()):
        assert all(fallback.name in BROKER_SETTINGS for fallback in setting.synonyms), setting.name


def test_dropped_names_are_not_also_known_ones() -> None:
    """Is a name either known or dropped, never both?"""
    assert not set(LEGACY) & set(BROKER_SETTINGS)

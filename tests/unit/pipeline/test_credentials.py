"""Whose client settings count: the profile's, the file's, those of the command line."""

from pathlib import Path

import pytest

from headrace.pipeline.file import parse_pipeline
from headrace.pipeline.session import Wishes, with_credentials

TEXT = """\
[pipeline]
name = "fleet"
BROKERS
[pipeline.properties]
"sasl.username" = "file"
[source.gps]
topic = "t"
schema = "a string"
[sink.one]
from = "gps"
topic = "out"
"""
PROFILE = {"bootstrap.servers": "profile:1", "sasl.username": "profile", "client.id": "profile"}
GIVEN = {"bootstrap.servers": "given:1", "sasl.password": "given"}


@pytest.mark.parametrize(
    ("brokers", "wishes", "expected"),
    [
        ("", Wishes(properties=PROFILE), {"sasl.username": "file", "client.id": "profile"}),
        ("", Wishes(properties=PROFILE, brokers="b:1"), {"sasl.username": "file"}),
        ('brokers = "b:1"', Wishes(properties=PROFILE), {"sasl.username": "file"}),
        ('brokers = "b:1"', Wishes(given=GIVEN), {"sasl.username": "file", "sasl.password": "given"}),
        ("", Wishes(given={"sasl.username": "given"}, brokers="b:1"), {"sasl.username": "given"}),
    ],
)
def test_whose_settings(brokers, wishes, expected):
    """Does the profile speak only for its own cluster, the file before it, and the command line before both?"""
    pipeline = parse_pipeline(TEXT.replace("BROKERS", brokers), file=Path("fleet.toml"))

    assert expected == with_credentials(pipeline, wishes).properties

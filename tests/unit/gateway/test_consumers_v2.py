"""What a client chose for its instance."""

import msgspec
import pytest

from headrace.gateway.consumers_v2 import CreateInstance, instance_options
from headrace.gateway.instances import InstanceOptions


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", InstanceOptions()),
        (b'{"name": "c", "format": "json"}', InstanceOptions(name="c", form="json")),
        (b'{"auto.commit.enable": "false"}', InstanceOptions(auto_commit=False)),
        (b'{"auto.commit.enable": true}', InstanceOptions()),
        (b'{"enable.auto.commit": false}', InstanceOptions(auto_commit=False)),
        (b'{"fetch.min.bytes": "5"}', InstanceOptions(min_bytes=5)),
        (b'{"fetch.min.bytes": -1}', InstanceOptions(min_bytes=1)),
        (b'{"consumer.request.timeout.ms": 0}', InstanceOptions(timeout_ms=0)),
        (b'{"auto.offset.reset": "earliest"}', InstanceOptions(reset="earliest")),
        (b'{"isolation.level": "read_uncommitted"}', InstanceOptions(isolation="read_uncommitted")),
    ],
)
def test_options_as_clients_write_them(body, expected):
    """Are numbers and truths read as JSON has them, and as files have them?"""
    assert instance_options(msgspec.json.decode(body, type=CreateInstance)) == expected

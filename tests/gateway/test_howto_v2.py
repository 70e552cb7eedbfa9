"""The how-to on the gateway, typed as it stands."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread

PAGE = Path(__file__).parents[2] / "docs/howto/gateway.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:```json\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
WRITTEN_TIME = 1_700_000_000_000


def shown(text):
    """An answer, without the times that nobody could have written down."""
    return json.loads(text, object_hook=_without_time)


def _without_time(answer):
    if answer.get("timestamp") not in {None, WRITTEN_TIME}:
        answer["timestamp"] = 0
    return answer


@pytest.fixture
def url():
    """A gateway before a broker that has seen nothing yet."""
    with Cluster() as cluster, GatewayThread(cluster.bootstrap) as gateway:
        yield gateway.url


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_howto_works_as_typed(url):
    """Does every command of the page succeed, in its order, and give what stands under it?"""
    address = url.removeprefix("http://").replace("127.0.0.1", "localhost")
    blocks = BLOCK.findall(PAGE.read_text())
    for typed, expected in blocks:
        done = subprocess.run(
            ["sh", "-e", "-c", typed.replace("localhost:8082", address)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{typed}\n{done.stdout}\n{done.stderr}"
        if expected:
            assert shown(done.stdout) == shown(expected.replace("localhost:8082", address)), typed
        else:
            assert "error_code" not in done.stdout, f"{typed}\n{done.stdout}"

    assert len(blocks) > 8
    assert httpx.get(f"{url}/topics").json() == ["__consumer_offsets", "orders"]

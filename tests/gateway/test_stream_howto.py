"""The how-to on streams, run as a reader would run it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from gateway.streaming import Log, Writer
from headrace.client.admin_values import NewTopic
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread
from headrace.testing.ports import free_port

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs/howto/streams.md").read_text()
SHELL = re.findall(r"^```sh\n(curl .*?)^```\n\n^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(SCRIPT,) = re.findall(r"^```js\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SAID = ["t-1 82", "t-1 95", "t-2 0", "t-2 41"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def here():
    """A gateway before the page's four records; makes the page's addresses its own."""
    with Cluster() as cluster, Writer(cluster.bootstrap) as writer, GatewayThread(cluster.bootstrap) as gateway:
        writer.admin.create_topics([NewTopic("trucks", 2)])
        for partition, speeds in enumerate([(82, 95), (0, 41)]):
            for number, speed in enumerate(speeds):
                at_ms = 1_763_280_000_000 + 20_000 * number
                value, key = b'{"speed_kmh":%d}' % speed, b"t-%d" % (partition + 1)
                writer.producer.send("trucks", value, key=key, partition=partition, timestamp_ms=at_ms).get(20)
        yield lambda text: text.replace("localhost:8082", gateway.url.removeprefix("http://"))


@pytest.mark.parametrize(("command", "expected"), SHELL)
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl(here, command, expected):
    """Does each command print what the page says?"""
    ran = subprocess.run(["bash", "-c", here(command)], capture_output=True, text=True, timeout=60, check=True)

    assert expected == ran.stdout


@pytest.mark.parametrize("program", PYTHON, ids=["lines", "websocket"])
def test_python(here, program):
    """Does each program print the four records?"""
    ran = subprocess.run([sys.executable, "-c", here(program)], capture_output=True, text=True, timeout=60, check=False)

    assert SAID == sorted(ran.stdout.splitlines()), ran.stderr


@pytest.fixture
def page():
    """A page in a real browser."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def test_browser(here, page):
    """Does EventSource in a real browser get the four records, and stop at the end?"""
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type == "log" else None)
    page.goto(here("http://localhost:8082/healthy"))
    page.evaluate(f"() => {{ {here(SCRIPT)}; window.source = source; }}")
    page.wait_for_function("() => window.source.readyState === EventSource.CLOSED")

    assert SAID == sorted(said)


def test_browser_over_a_restart(broker, writer, page):
    """Does EventSource by itself go on without loss or repeat when the gateway is started again?"""
    log = Log(writer, partitions=2)
    settings = {"listeners": f"http://127.0.0.1:{free_port()}", "stream.retry.ms": "50"}
    with GatewayThread(broker.bootstrap, settings) as gateway:
        page.goto(f"{gateway.url}/healthy")
        page.evaluate(
            """(address) => {
                window.seen = [];
                window.source = new EventSource(address);
                window.source.onmessage = (event) => window.seen.push(JSON.parse(event.data).value);
            }""",
            f"{gateway.url}/stream/{log.topic}?since=earliest",
        )
        log.send(*range(10))
        page.wait_for_function("() => window.seen.length >= 10")
    log.send(*range(10, 20))
    with GatewayThread(broker.bootstrap, settings):
        page.wait_for_function("() => window.seen.length >= 20")
        log.send(*range(20, 30))
        page.wait_for_function("() => window.seen.length >= 30")
        page.evaluate("() => window.source.close()")

    assert list(range(30)) == sorted(page.evaluate("() => window.seen"))


V2_JSON, V2_TEXT = (f"application/vnd.kafka.{name}.v2+json" for name in ("json", "text"))


def test_keys_with_quotes(here):
    """Do the ways that the page names find a key stored as JSON, and those stored otherwise have no quotes?"""
    url = here("http://localhost:8082")
    (said,) = re.findall(r"^### Keys with quotes\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    ways = [way.split("=", 1) for way in re.findall(r"^- `(.*)`$", said, re.MULTILINE)]
    cluster_id = httpx.get(f"{url}/v3/clusters").json()["data"][0]["cluster_id"]

    for number, media in enumerate([V2_JSON, V2_TEXT]):
        body = {"records": [{"key": "t-1", "value": str(number)}]}
        httpx.post(f"{url}/topics/keys", json=body, headers={"content-type": media}).raise_for_status()
    as_string = {"type": "STRING", "data": "t-1"}
    body = {"key": as_string, "value": {"type": "JSON", "data": 2}}
    httpx.post(f"{url}/v3/clusters/{cluster_id}/topics/keys/records", json=body).raise_for_status()

    def found(name, value):
        query = {"since": "earliest", "until": "latest", name: value}
        answer = httpx.get(f"{url}/stream/keys", params=query, headers={"accept": "application/x-ndjson"})
        return [json.loads(line)["key"] for line in answer.text.splitlines()]

    assert 2 == len(ways)
    assert [['"t-1"']] * 2 == [found(name, unquote(value)) for name, value in ways]
    assert [["t-1", "t-1"]] * 2 == [found("key", "t-1"), found("filter", 'key == "t-1"')]
    assert json.dumps({"key": '"t-1"'}, separators=(",", ":"))[1:-1] in said


def test_every_parameter_is_there(here):
    """Does the page name every parameter there is?"""
    from headrace.gateway.streams.wish import StreamQuery

    assert [name for name in StreamQuery.__struct_fields__ if f"| `{name}` |" not in PAGE] == []
    assert (3, 2) == (len(SHELL), len(PYTHON))

"""The page on REST v3, and the reference made from the routes."""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/howto/gateway-v3.md"
TOOL = ROOT / "tools" / "generate_http_reference.py"
ANYTHING = "…"


def fits(shown, found):
    """Whether an answer is what the page shows, where it shows something."""
    if shown == ANYTHING:
        return True
    if isinstance(shown, dict):
        return isinstance(found, dict) and shown.keys() == found.keys() and all(fits(shown[k], found[k]) for k in shown)
    if isinstance(shown, list):
        return len(shown) == len(found) and all(map(fits, shown, found))
    return shown == found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl to run the page with")
def test_howto_works_as_typed():
    """Does every command of the page succeed, in its order, with the answer the page shows?"""
    blocks = re.findall(r"```(sh|json)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    marks, script = [], ["set -euo pipefail"]
    for kind, text in blocks:
        if kind == "sh":
            script += [f"echo '### {len(marks)}'", text]
            marks.append(None)
        else:
            marks[-1] = json.loads(text)
    with Cluster() as cluster, GatewayThread(cluster.bootstrap) as gateway:
        whole = "\n".join(script).replace("http://localhost:8082", gateway.url)
        # Only what the page shows to be refused may be.
        whole = re.sub(r"curl -sS (?!\$HERE/topics/absent)", "curl -sS --fail-with-body ", whole)
        done = subprocess.run(["bash", "-c", whole], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = re.split(r"### \d+\n", done.stdout)[1:]

    assert len(answers) == len(marks) > 10
    for shown, answer in zip(marks, answers, strict=True):
        if shown is not None:
            assert fits(shown, json.loads(answer)), answer
    commands = [text for kind, text in blocks if kind == "sh"]
    stream = next(answer for text, answer in zip(commands, answers, strict=True) if "-T -" in text)
    assert [json.loads(line)["offset"] for line in stream.splitlines()] == [0, 1, 2]


def test_the_reference_is_what_the_routes_say():
    """Was docs/reference/http-api.md made again after the last change of a route?"""
    spec = importlib.util.spec_from_file_location("generate_http_reference", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.TARGET.read_text(encoding="utf-8") == tool.render(), f"run {TOOL.name}"

"""A cluster over several servers, as the page about it says: hosts of their own, settings files, Kafka's commands."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.testing.probe import answers
from network_hosts import Hosts, NoHosts

pytestmark = [pytest.mark.slow, pytest.mark.clients]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/servers.md").read_text()
DATA = "/var/lib/headrace"
RECORDS = 500
PATIENCE_S = 90.0
LOOK_EVERY_S = 0.1
SERVERS = {"Three servers": {1: [1, 2, 3]}, "Controllers on servers of their own": {1: [1, 2, 3], 4: [4, 5, 6]}}
"""Of each section: which servers are like the one whose file it shows."""


class Site:
    """Some hosts, and what a section of the page has typed on them."""

    def __init__(self, hosts: Hosts, directory: Path, section: str) -> None:
        self._hosts = hosts
        self._directory = directory
        self._text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]
        self._servers: list[subprocess.Popen[bytes]] = []
        self._alike = {number: like for like, numbers in SERVERS[section].items() for number in numbers}
        # Not what is installed, but what is in this tree.
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        (directory / "bin").symlink_to(ROOT / "bin")

    def write_files(self) -> None:
        """A settings file for each host: the one the page shows for its like, with its own id and address."""
        shown = {int(re.search(r"node.id=(\d+)", text)[1]): text for text in self._blocks("properties")}
        assert set(shown) == set(self._alike.values())
        for number, like in self._alike.items():
            own = shown[like].replace(f"node.id={like}\n", f"node.id={number}\n")
            own = re.sub(r"(?m)^(advertised.*)$", lambda line: line[0].replace(f".1{like}:", f".1{number}:"), own)  # noqa: B023
            own = own.replace(DATA, str(self._directory / f"data{number}"))
            self._file(number).write_text(own)

    def run_page(self) -> dict[str, str]:
        """Type every command, those that name a server's file on each server like it; what each printed."""
        printed = {}
        for line in (line for block in self._blocks("sh") for line in block.splitlines()):
            named = re.search(r"host(\d)\.properties", line)
            if named is None:
                self._wait_for_brokers()
                printed[line] = self.prints(self._hosts.client.command("sh", "-c", line))
                continue
            for number in (number for number, like in self._alike.items() if like == int(named[1])):
                words = line.replace(named[0], self._file(number).name).split()
                self._on_server(number, words)
        return printed

    def _on_server(self, number: int, words: list[str]) -> None:
        command = self._hosts[number].command(*words)
        if "server-start" not in words[0]:
            self.prints(command)
            return
        with (self._directory / f"host{number}.out").open("wb") as output:
            self._servers.append(
                subprocess.Popen(
                    command, cwd=self._directory, env=self._environment, stdout=output, stderr=subprocess.STDOUT
                )
            )

    def _wait_for_brokers(self) -> None:
        end = time.monotonic() + PATIENCE_S
        with self._hosts.client.entered():
            for number in self._alike:
                if "broker" not in self._file(number).read_text().splitlines()[0]:
                    continue
                while not answers(9092, host=self._hosts[number].address):
                    assert time.monotonic() < end, f"host {number} does not answer\n{self.outputs()}"
                    time.sleep(LOOK_EVERY_S)

    def prints(self, command: list[str]) -> str:
        """What a command that succeeds prints."""
        done = subprocess.run(
            command,
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}\n{self.outputs()}"
        return done.stdout

    def outputs(self) -> str:
        """What the servers said."""
        return "\n".join(f"{path.name}\n{path.read_text()}" for path in sorted(self._directory.glob("*.out")))

    def stop(self) -> list[int]:
        """Ask all servers to stop, one after the other; their exit codes."""
        for server in reversed(self._servers):
            server.terminate()
        return [server.wait(PATIENCE_S) for server in self._servers]

    def end(self) -> None:
        """Leave no process behind."""
        for server in self._servers:
            server.kill()
            server.wait()

    def _blocks(self, kind: str) -> list[str]:
        return re.findall(rf"```{kind}\n(.*?)```", self._text, re.DOTALL)

    def _file(self, number: int) -> Path:
        return self._directory / f"host{number}.properties"


@pytest.fixture(scope="module")
def set_up():
    """The commands have been used before: what they fetch at their first use, these hosts could not reach."""
    ask = "from headrace.cli.extras import ensure_extra; ensure_extra('client')"
    subprocess.run(["bin/headrace", "python", "-c", ask], cwd=ROOT, check=True, capture_output=True)


@pytest.fixture
def site(tmp_path, set_up):
    """Makes the hosts of a section; they and what runs on them are gone when the test ends."""
    made = []

    def make(section: str) -> tuple[Hosts, Site]:
        try:
            hosts = Hosts(sum(map(len, SERVERS[section].values())))
        except NoHosts as reason:
            pytest.skip(f"no hosts: {reason}")
        made.append(hosts)
        made.insert(0, one := Site(hosts, tmp_path, section))
        return hosts, one

    yield make
    for one in made:
        one.end() if isinstance(one, Site) else one.remove()


@pytest.mark.parametrize("section", SERVERS)
def test_servers_as_the_page_says(site, section):
    """R5, R10: Do servers on hosts of their own become one cluster, with nothing but the files and commands shown?"""
    hosts, one = site(section)
    one.write_files()
    printed = one.run_page()
    brokers = [f"{host.address}:9092" for host in list(hosts)[-3:]]
    script = str(Path(__file__).with_name("distant_client.py"))
    told = one.prints(hosts.client.command(sys.executable, script, brokers[0], "events", str(RECORDS)))

    assert told.split() == [str(RECORDS), str(RECORDS), *brokers]
    consumed = [text for line, text in printed.items() if "console-consumer" in line]
    assert consumed == ["first event\n"]
    (status,) = [text for line, text in printed.items() if "metadata-quorum" in line]
    assert all(f'"id": {number}, ' in status.partition("CurrentObservers")[0] for number in (1, 2, 3)), status
    assert set(one.stop()) <= {0, 143}, one.outputs()
    assert "Traceback" not in one.outputs()

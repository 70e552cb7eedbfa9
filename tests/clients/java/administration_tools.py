"""Our administration tools and Kafka's own, given the same command against the same broker."""

import importlib
import json
import re
import time

from clients.libraries import DEADLINE_S

CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "get_offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete_records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log_dirs": "org.apache.kafka.tools.LogDirsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "broker_api_versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "metadata_quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "leader_election": "org.apache.kafka.tools.LeaderElectionCommand",
    "reassign_partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
}
# What Kafka's tools exit with 0 after, although what was asked for was not done.
FAILURES = {
    "--describe --broker 7",
    "--describe --topic nix",
    "--describe --group nix",
    "--offset-json-file FILES/some.json",
}
LOOKING = ("--describe", "--list", "describe")
LOOKS = 3
# What Java prints of an exception besides its message, and what changes from one moment to the next.
NOISE = re.compile(
    r"(?m)^(\s+at .*|Caused by: .*|\s+\.\.\. \d+ more|[\w.$]+(Exception|Exited): .*)\n"
    r"|(?<=Epoch: )\d+|(?<=HighWatermark: )\s*\d+|(?<=\t)\d+ *(?=\t\d+ *\t\d{13})|\d{13}|\d+ ms ago +"
)


class Tools:
    """Runs both tools against one broker."""

    def __init__(self, java, broker, capsys, tmp_path):
        self.java, self.broker, self.capsys, self.tmp_path = java, broker, capsys, tmp_path

    def theirs(self, name: str, line: str) -> tuple[int, str]:
        """Kafka's tool: exit code and output."""
        done = self.java.run(CLASSES[name], *self._words(line))
        return done.code, done.out

    def ours(self, name: str, line: str) -> tuple[int, str]:
        """Our tool: exit code and output."""
        module = importlib.import_module(f"headrace.cli.{name}")
        self.capsys.readouterr()
        code = module.main(self._words(line), module.TOOL.name)
        return code, self.capsys.readouterr().out

    def _words(self, line: str) -> list[str]:
        return ["--bootstrap-server", self.broker.bootstrap, *line.replace("FILES", str(self.tmp_path)).split()]

    def compare(self, name: str, line: str, *, sort: bool = False) -> None:
        """Both print the same and agree on success, except where Kafka calls a failure a success.

        What only looks is looked at again if they differ: Kafka answers before its brokers know of a change.
        """
        for _ in range(LOOKS if line.startswith(LOOKING) else 1):
            code, out = self.theirs(name, line)
            mine, printed = self.ours(name, line)
            expected, got = (NOISE.sub("", text).rstrip() for text in (out, printed))
            if sort:
                expected, got = (sorted(text.splitlines()) for text in (expected, got))
            if expected == got:
                break
        assert expected == got, f"{name} {line}\n{expected}\n--- ours:\n{got}"
        assert (1 if line in FAILURES else min(code, 1)) == mine, f"{name} {line}"

    def create(self, *topics: str) -> None:
        """Topics of three partitions; Kafka says that they are made before its brokers have heard of them."""
        for topic in topics:
            self.ours("topics", f"--create --topic {topic} --partitions 3 --if-not-exists")
        deadline = time.monotonic() + DEADLINE_S
        while not set(topics) <= set(self.ours("topics", "--list")[1].split()):
            assert time.monotonic() < deadline

    def file(self, name: str, document: object) -> None:
        """A file for the tools, in the directory that FILES stands for."""
        (self.tmp_path / name).write_text(document if isinstance(document, str) else json.dumps(document))

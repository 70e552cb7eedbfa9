"""Apache Kafka itself as a broker process: the peer that tests and benchmarks hold Headrace against."""

import subprocess
import uuid
from typing import Final

from headrace.model.ids import encode_uuid
from headrace.testing.broker_process import FORMAT_TIMEOUT_S, BrokerFailed, BrokerProcess
from headrace.testing.kafka_jars import classpath, java_command

# The heap and the garbage collector settings of Kafka's own start scripts.
_BROKER_FLAGS: Final = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)


class KafkaPeer(BrokerProcess):
    """Apache Kafka, combined broker and controller, one node."""

    name = "kafka"
    format_options: tuple[str, ...] = ()
    """More words for the tool that prepares the directory: users that exist from the start."""

    def command(self) -> list[str]:
        """What `kafka-server-start.sh` ends in."""
        return [java_command(), *_BROKER_FLAGS, "-cp", classpath(), "kafka.Kafka", str(self.properties)]

    def format(self, cluster_id: str = "") -> None:
        """Write the directory's metadata, which Kafka refuses to start without."""
        cluster_id = cluster_id or encode_uuid(uuid.uuid4())
        command = [java_command(), "-Xmx256M", "-cp", classpath(), "kafka.tools.StorageTool", "format"]
        # One argument: a random id may begin with a dash, and would be taken for an option.
        command += [f"--cluster-id={cluster_id}", "--config", str(self.properties), *self.format_options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise BrokerFailed(f"kafka.tools.StorageTool failed:\n{done.stdout}{done.stderr}")

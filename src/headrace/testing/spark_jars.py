"""The jars of Spark's own Kafka connector: the peer that our data source is held against, and a client of our brokers.

Spark itself comes with pyspark. The connector is published a version behind it, and one of the jars it needs is two
behind, so the four are named one by one instead of being resolved; what else they need is among pyspark's jars.
"""

from pathlib import Path
from typing import Final

from headrace.testing.kafka_jars import fetched

CONNECTOR_VERSION: Final = "4.2.0"
_COORDINATES: Final = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", CONNECTOR_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)


def connector_jars() -> list[Path]:
    """What `spark.jars` must name for `format("kafka")` to be there; PeerUnavailable says what is missing for it."""
    return sorted(fetched(f"spark-connector-{CONNECTOR_VERSION}", _COORDINATES, alone=True).glob("*.jar"))

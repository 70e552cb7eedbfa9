from typing import Final

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import (
    ConfigResource,
    ConfigResourceType,
    NewPartitions,
    NewTopic,
)
from headrace.client.async_admin import AsyncKafkaAdmin
from headrace.client.async_consumer import AsyncKafkaConsumer
from headrace.client.async_producer import AsyncKafkaProducer
from headrace.client.consumer import KafkaConsumer
from headrace.client.fault import (
    BadOption,
    ClientFault,
    Closed,
    NoBroker,
    NotAuthenticated,
    NotServed,
    TimedOut,
    UnknownOption,
)
from headrace.client.listener import ConsumerRebalanceListener
from headrace.client.producer import KafkaProducer
from headrace.client.records import (
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RecordMetadata,
    TopicPartition,
)
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

__version__: Final[str]

__all__ = (
    "AsyncKafkaAdmin",
    "AsyncKafkaConsumer",
    "AsyncKafkaProducer",
    "BadOption",
    "ClientFault",
    "Closed",
    "ConfigResource",
    "ConfigResourceType",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ErrorCode",
    "HeadraceError",
    "KafkaAdmin",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "NewPartitions",
    "NewTopic",
    "NoBroker",
    "NotAuthenticated",
    "NotServed",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RecordMetadata",
    "TimedOut",
    "TopicPartition",
    "UnknownOption",
    "__version__",
)

"""A Kafka client that says exactly what a test tells it to: any API, any version, any bytes, on a blocking socket."""

import contextlib
import select
import socket
import struct
from itertools import count

from headrace.wire.apis import APIS
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import parse_response_header, request_header
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

KEYS = {api.name: key for key, api in APIS.items()}
TIMEOUT_S = 20.0


class WireClient:
    """One connection."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", client_id: str | None = "wire-client") -> None:
        self._socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self._client_id = client_id
        self._correlation_ids = count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def has_answer(self) -> bool:
        """Whether there is something to receive, be it that the other side hung up."""
        return bool(select.select([self._socket], [], [], 0)[0])

    # --- requests as messages

    def ask(self, api: str, version: int, request):
        """Send one request and wait for its answer."""
        return self.receive(api, version, self.send(api, version, request))

    def send(self, api: str, version: int, request) -> int:
        """Send one request; gives its correlation id."""
        correlation_id = next(self._correlation_ids)
        body = encode_request(KEYS[api], version, request)
        self.send_frame(request_header(KEYS[api], version, correlation_id, self._client_id) + body)
        return correlation_id

    def receive(self, api: str, version: int, correlation_id: int):
        """The answer to a request that was sent; answers come in the order of the requests."""
        frame = self.receive_frame()
        answered, body = parse_response_header(KEYS[api], version, frame)
        assert answered == correlation_id, f"the answer to {answered} came, {correlation_id} was expected"
        return decode_response(KEYS[api], version, frame, body)

    # --- the everyday requests, for one topic and partition

    def create_topic(self, name: str, *, partitions: int = 1, **configs: str):
        """Create a topic; in `configs` underscores stand for dots. Gives the result, its error code in it."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
            ),
        )
        (result,) = self.ask("CreateTopics", 7, CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)).topics
        return result

    def delete_topic(self, name: str):
        """Delete a topic; gives the result."""
        request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=30_000)
        (result,) = self.ask("DeleteTopics", 5, request).responses
        return result

    def describe_topic(self, name: str, *, allow_creation: bool = False):
        """What the metadata says of a topic."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=allow_creation)
        (topic,) = self.ask("Metadata", 12, request).topics
        return topic

    def produce(self, topic: str, batch: bytes, *, partition: int = 0, acks: int = -1, version: int = 12):
        """Send one batch; gives the partition's result, or None for acks=0, where there is none."""
        correlation_id = self.produce_later(topic, batch, partition=partition, acks=acks, version=version)
        if acks == 0:
            return None
        (answered,) = self.receive("Produce", version, correlation_id).responses
        (result,) = answered.partition_responses
        return result

    def produce_later(self, topic: str, batch: bytes, *, partition: int = 0, acks: int = -1, version: int = 12) -> int:
        """Send one batch and do not wait; gives the correlation id."""
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
        request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=(data,))
        return self.send("Produce", version, request)

    def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        max_bytes: int = 1 << 20,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        version: int = 12,
    ):
        """Fetch outside any session; gives the partition's result."""
        request = one_fetch(
            topic, offset, partition=partition, max_bytes=max_bytes, max_wait_ms=max_wait_ms, min_bytes=min_bytes
        )
        (answered,) = self.ask("Fetch", version, request).responses
        (result,) = answered.partitions
        return result

    def list_offset(self, topic: str, timestamp: int, *, partition: int = 0, version: int = 11):
        """Look up one offset; gives the partition's result."""
        asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))
        (answered,) = self.ask("ListOffsets", version, request).topics
        (result,) = answered.partitions
        return result

    def new_producer_id(self) -> tuple[int, int]:
        """A producer id and epoch from the broker."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = self.ask("InitProducerId", 4, request)
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    # --- requests as bytes

    def send_frame(self, payload: bytes) -> None:
        """Send bytes with their length in front."""
        self.send_bytes(struct.pack(">i", len(payload)) + payload)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next answer without its length; ConnectionError if the broker hung up."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            data += piece
        return bytes(data)

    def is_closed_by_broker(self) -> bool:
        """Whether the broker hangs up without another byte; waits for it to make up its mind."""
        with contextlib.suppress(ConnectionError):
            return self._socket.recv(1) == b""
        return True


def one_fetch(
    topic: str, offset: int, *, partition: int = 0, max_bytes: int = 1 << 20, max_wait_ms: int = 0, min_bytes: int = 1
) -> FetchRequest:
    """A request for one partition, outside any session."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=(FetchTopic(topic=topic, partitions=(asked,)),),
    )

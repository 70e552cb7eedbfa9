"""A desk for share groups: members that join, fetch and acknowledge in few words."""

import asyncio
import inspect
from types import SimpleNamespace

from headrace.broker.api import Call
from headrace.broker.handlers import api76_share_group_heartbeat, api78_share_fetch, api79_share_acknowledge
from headrace.records.batch import split_batches
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response
from headrace.wire.header import RequestHeader
from headrace.wire.messages import share_acknowledge, share_fetch
from headrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

SETTINGS = {"offsets.topic.num.partitions": "1", "share.coordinator.state.topic.num.partitions": "2"}
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP = "g"


class ShareDesk:
    """Share groups on the broker of a desk."""

    def __init__(self, desk):
        self.desk = desk
        self.connections = {}
        self.switch_on()

    @property
    def broker(self):
        """The broker of the desk."""
        return self.desk.broker

    def switch_on(self):
        """Switch share groups on, also after a restart, and have a group coordinator."""
        self.broker.metadata.features["share.version"] = 1
        self.desk.run(self.broker.groups.ensure_topic())

    def topic_id(self, name="orders"):
        """The id of a topic."""
        return self.broker.metadata.topics[name].topic_id

    def connection(self, member="a"):
        """Where a member's requests come from."""
        return self.connections.setdefault(
            member, SimpleNamespace(listener_name="PLAINTEXT", peer=("127.0.0.1", 5), closed=False)
        )

    async def asked(self, api, request, *, member="a", version=None):
        """The answer, in the wire's bytes and back."""
        version = api.high if version is None else version
        call = Call(self.broker, self.connection(member), RequestHeader(api.key, version, 1, "test", 0))
        sent = decode_request(api.key, version, memoryview(encode_request(api.key, version, request)), 0)
        answer = api.handle(call, sent)
        answer = await answer if inspect.isawaitable(answer) else answer
        return decode_response(api.key, version, memoryview(encode_response(api.key, version, answer)), 0)

    def ask(self, api, request, *, member="a", version=None):
        """The same, waiting for it."""
        return self.desk.run(self.asked(api, request, member=member, version=version))

    def join(self, member="a", *, topics=("orders",), epoch=0, group=GROUP):
        """One heartbeat."""
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
        )
        return self.ask(api76_share_group_heartbeat.API, request, member=member)

    def fetch_request(self, member="a", *, epoch=0, topics=None, acks=(), wait_ms=0, **fields):
        """A share fetch of all partitions of a topic, or with acknowledgements of partition 0."""
        batches = tuple(
            share_fetch.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
            for first, last, kind in acks
        )
        if topics is None:
            topics = (("orders", 0),) if epoch == 0 or acks else ()
        return share_fetch.ShareFetchRequest(
            group_id=GROUP,
            member_id=member,
            share_session_epoch=epoch,
            topics=tuple(
                share_fetch.FetchTopic(
                    topic_id=self.topic_id(name),
                    partitions=(share_fetch.FetchPartition(partition_index=index, acknowledgement_batches=batches),),
                )
                for name, index in topics
            ),
            **{
                "max_wait_ms": wait_ms,
                "min_bytes": 1,
                "max_bytes": 1_000_000,
                "max_records": 500,
                "batch_size": 500,
                **fields,
            },
        )

    def fetch(self, member="a", **fields):
        """What one share fetch is answered."""
        return self.ask(api78_share_fetch.API, self.fetch_request(member, **fields), member=member)

    def acknowledge(self, member="a", *, epoch, acks, partition=("orders", 0), renew=False, version=None):
        """Error code of the request, and of its one partition."""
        name, index = partition
        request = share_acknowledge.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=member,
            share_session_epoch=epoch,
            is_renew_ack=renew,
            topics=(
                share_acknowledge.AcknowledgeTopic(
                    topic_id=self.topic_id(name),
                    partitions=(
                        share_acknowledge.AcknowledgePartition(
                            partition_index=index,
                            acknowledgement_batches=tuple(
                                share_acknowledge.AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=(kind,)
                                )
                                for first, last, kind in acks
                            ),
                        ),
                    ),
                ),
            ),
        )
        answer = self.ask(api79_share_acknowledge.API, request, member=member, version=version)
        codes = [one.error_code for topic in answer.responses for one in topic.partitions]
        return answer.error_code, *codes

    def leader(self, index=0, name="orders"):
        """The share partition as it is led."""
        return self.broker.share.partitions.find((GROUP, self.topic_id(name), index))

    async def until(self, condition):
        """Give way to others until something is so."""
        for _ in range(100_000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never came to be")

    def settle(self):
        """Let what runs in the background come to an end."""

        async def turns():
            for _ in range(200):
                await asyncio.sleep(0)

        self.desk.run(turns())
        self.desk.run(self.broker.flusher.drained())
        self.desk.run(turns())


def acquired(answer):
    """What a share fetch acquired: (partition, first offset, last offset, delivery count), in order."""
    return [
        (one.partition_index, run.first_offset, run.last_offset, run.delivery_count)
        for topic in answer.responses
        for one in topic.partitions
        for run in one.acquired_records
    ]


def extents(answer):
    """The batches that a share fetch returned, by their first and last offsets."""
    return [
        (header.base_offset, header.last_offset)
        for topic in answer.responses
        for one in topic.partitions
        for _, header in split_batches(one.records or b"")
    ]


def errors(answer):
    """(partition, error, acknowledge error) of each partition."""
    return [
        (one.partition_index, one.error_code, one.acknowledge_error_code)
        for topic in answer.responses
        for one in topic.partitions
    ]

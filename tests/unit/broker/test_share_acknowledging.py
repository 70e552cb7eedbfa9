"""Acknowledgements of many partitions in one request."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

from headrace.broker.share_acknowledging import acknowledge
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_acknowledge import AcknowledgementBatch

PARTITIONS = 20


def test_others_have_their_turn():
    """Does the loop go round while a request says something of each record of many partitions?"""
    unread = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nobody reads it")
    nobody = SimpleNamespace(partitions=SimpleNamespace(find=lambda _: None, missing=lambda _: unread))
    batch = AcknowledgementBatch(first_offset=0, last_offset=2999, acknowledge_types=(1, 2) * 1500)
    said = {(UUID(int=1), index): (batch,) for index in range(PARTITIONS)}
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run():
        counting = asyncio.ensure_future(count())
        results = await acknowledge(nobody, "g", "a", said, may_renew=False)
        counting.cancel()
        return results

    results = asyncio.run(run())

    assert {error.code for error in results.values()} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert list(results) == list(said)
    assert turns >= PARTITIONS

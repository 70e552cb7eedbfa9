"""WriteTxnMarkers, key 27.

Versions: 1-2.
Behaviour: writes the markers that end transactions on partitions led here, for the coordinator of another broker or
for an administrator who ends a transaction that hangs (KIP-664). Each partition is answered when its marker is safe.
Deviations: none known.
KIPs: 98, 664, 1228 transaction version (v2).
"""

from __future__ import annotations

import asyncio

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.markers import Marker, write_markers
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


async def handle(call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Write the markers; all of them are on their way at once, in the order they came."""
    results = await asyncio.gather(*(_write(call, marker) for marker in request.markers))
    return WriteTxnMarkersResponse(markers=tuple(results))


async def _write(call: Call, asked: WritableTxnMarker) -> WritableTxnMarkerResult:
    marker = Marker(
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        commit=asked.transaction_result,
        coordinator_epoch=asked.coordinator_epoch,
        transaction_version=asked.transaction_version,
    )
    # A partition that is named twice gets one marker.
    places = dict.fromkeys((topic.name, index) for topic in asked.topics for index in topic.partition_indexes)
    codes = await write_markers(call.broker, marker, places)
    return WritableTxnMarkerResult(
        producer_id=asked.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=int(codes[topic.name, index]))
                    for index in topic.partition_indexes
                ),
            )
            for topic in asked.topics
        ),
    )


API = Api(key=27, low=1, high=2, handle=handle)

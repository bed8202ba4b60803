"""WriteTxnMarkers (key 27), versions 1-2. KIP-98, KIP-664, KIP-890.

- A coordinator, or somebody who may change the cluster, ends transactions in partitions here.
- A partition without a log here that can be used: UNKNOWN_TOPIC_OR_PARTITION.
- Each producer has one entry in the answer, whichever number of markers it had; none without
  partitions.
- From version 2 on it says by which transaction.version it ended, and the epoch is judged by that.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.markers import Marker
from kraftline.broker.partition import Partition
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_Errors = dict[tuple[str, int], ErrorCode]


async def answer(request: WriteTxnMarkersRequest, context: Context) -> WriteTxnMarkersResponse:
    if not context.may(Operation.ALTER, Resource.CLUSTER):
        context.require(Operation.CLUSTER_ACTION)
    errors: dict[int, _Errors] = {}
    for each in request.markers:
        found = await _write(each, context)
        if found:
            errors.setdefault(each.producer_id, {}).update(found)
    return _response(errors)


def failed(
    request: WriteTxnMarkersRequest, error: ErrorCode, context: Context
) -> WriteTxnMarkersResponse:
    return _response(
        {
            each.producer_id: {
                (topic.name, number): error
                for topic in each.topics
                for number in topic.partition_indexes
            }
            for each in request.markers
        }
    )


async def _write(asked: WritableTxnMarker, context: Context) -> _Errors:
    broker = context.broker
    marker = Marker(
        producer_id=asked.producer_id,
        epoch=asked.producer_epoch,
        is_commit=asked.transaction_result,
        coordinator_epoch=asked.coordinator_epoch,
        version=asked.transaction_version,
    )
    errors: _Errors = {}
    for topic in asked.topics:
        for number in topic.partition_indexes:
            found = broker.partitions.get(topic.name, number)
            if not isinstance(found, Partition) or found.is_offline:
                errors[topic.name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            try:
                settled = broker.transactions.markers.write(topic.name, number, marker)
                if settled is not None:
                    await settled
            except Refusal as refusal:
                errors[topic.name, number] = refusal.code
            else:
                errors[topic.name, number] = ErrorCode.NONE
    return errors


def _response(errors: dict[int, _Errors]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(producer_id=id, topics=_topics(found))
            for id, found in errors.items()
        )
    )


def _topics(errors: _Errors) -> tuple[WritableTxnMarkerTopicResult, ...]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (name, number), error in errors.items():
        topics.setdefault(name, []).append(
            WritableTxnMarkerPartitionResult(partition_index=number, error_code=error)
        )
    return tuple(
        WritableTxnMarkerTopicResult(name=name, partitions=tuple(results))
        for name, results in topics.items()
    )

"""DeleteRecords (key 21), versions 0-2.

- The log of a partition starts at the offset from now on (-1: at the high watermark); whole
  segments before it go with the next round of retention.
- Past the high watermark, or below -1: OFFSET_OUT_OF_RANGE. A topic that is only compacted:
  POLICY_VIOLATION. An internal topic: INVALID_TOPIC_EXCEPTION.
- Replicas elsewhere that are alive have to follow within the timeout, else REQUEST_TIMED_OUT.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.partition import Partition
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.topic_names import is_internal
from kraftline.schema.api.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.storage.log import LogProblem

_HIGH_WATERMARK = -1
_NO_WATERMARK = -1


def answer(
    request: DeleteRecordsRequest, context: Context
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    image = context.broker.cache.image
    # As in Kafka, of a partition that is named twice the last counts.
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for each in topic.partitions:
            wanted.setdefault(topic.name, {})[each.partition_index] = each
    response = DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=name,
                partitions=tuple(_delete(name, each, context, image) for each in parts.values()),
            )
            for name, parts in wanted.items()
        )
    )
    if any(
        each.error_code == ErrorCode.REQUEST_TIMED_OUT
        for topic in response.topics
        for each in topic.partitions
    ):
        return _after(request.timeout_ms, response)
    return response


def failed(
    request: DeleteRecordsRequest, error: ErrorCode, context: Context
) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _refused(each.partition_index, error) for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


async def _after(milliseconds: int, response: DeleteRecordsResponse) -> DeleteRecordsResponse:
    await asyncio.sleep(milliseconds / 1000)
    return response


def _delete(
    topic: str, wanted: DeleteRecordsPartition, context: Context, image: MetadataImage
) -> DeleteRecordsPartitionResult:
    number = wanted.partition_index
    if not context.may(Operation.DELETE, Resource.TOPIC, topic):
        return _refused(number, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = context.broker.partitions.find(topic, number, image.topics)
    if partition is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _refused(number, partition)
    if is_internal(topic):
        return _refused(number, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not isinstance(partition, Partition):
        return _refused(number, partition)
    if not partition.is_leader:
        return _refused(number, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = partition.log
    if not log.config.delete:
        return _refused(number, ErrorCode.POLICY_VIOLATION)
    offset = log.high_watermark if wanted.offset == _HIGH_WATERMARK else wanted.offset
    if offset < 0:
        return _refused(number, ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        log.advance_start(offset)
    except LogProblem as problem:
        return _refused(number, problem.code)
    partition.wake()
    result = DeleteRecordsPartitionResult(partition_index=number, low_watermark=log.start_offset)
    if _others_have_to_follow(partition, context, image):
        return msgspec.structs.replace(
            result, low_watermark=_NO_WATERMARK, error_code=ErrorCode.REQUEST_TIMED_OUT
        )
    return result


def _refused(partition: int, error: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=partition, low_watermark=_NO_WATERMARK, error_code=error
    )


def _others_have_to_follow(partition: Partition, context: Context, image: MetadataImage) -> bool:
    assert partition.registration is not None
    brokers = image.cluster.brokers
    return any(
        replica != context.broker.node_id and replica in brokers and not brokers[replica].fenced
        for replica in partition.registration.replicas
    )

"""ListOffsets (key 2), versions 1-11.

- Latest (-1) is the high watermark, with read_committed the last stable offset, for a replica the
  log's end; earliest (-2); the record with the largest timestamp (-3, from version 7 on); earliest
  on this disk (-4, from 8). There is no tiered storage, so nothing is in it (-5, from 9) or on its
  way there (-6, from 11).
- Other negative times, or too new ones for the version: UNSUPPORTED_VERSION.
- A time gives the first record that is not older, if it can be fetched yet. Such lookups read
  files, so they are done in threads.
- A partition that is named twice: INVALID_REQUEST.
- OFFSET_NOT_AVAILABLE (before version 5 LEADER_NOT_AVAILABLE) while a new leader does not know
  what is committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from kraftline.broker.context import Context
from kraftline.broker.fetch_reading import check_leader
from kraftline.broker.partition import Partition
from kraftline.errors import BadData
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kraftline.storage.log import LogProblem, OffsetAt

_logger = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
NEWEST: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    NEWEST: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_EPOCHS: Final = 4
_KNOWS_NOT_AVAILABLE: Final = 5
_CONSUMER: Final = -1
_DEBUGGING: Final = -2
_READ_COMMITTED: Final = 1

_Answer: TypeAlias = ListOffsetsPartitionResponse
_Later: TypeAlias = "Callable[[], _Answer]"


def answer(
    request: ListOffsetsRequest, context: Context
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    topics = context.broker.cache.image.topics
    named = Counter(
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    found: dict[str, dict[int, _Answer | _Later]] = {}
    refused: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        if not context.may(Operation.DESCRIBE, Resource.TOPIC, topic.name):
            refused.append(_all(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        of_topic = found.setdefault(topic.name, {})
        for each in topic.partitions:
            if named[topic.name, each.partition_index] > 1:
                of_topic[each.partition_index] = _nothing(each, ErrorCode.INVALID_REQUEST)
            else:
                of_topic[each.partition_index] = _look_up(
                    topic.name, each, request, context, topics
                )
    if any(callable(each) for of_topic in found.values() for each in of_topic.values()):
        return _in_a_thread(found, refused, context)
    return _response(found, refused)


def failed(request: ListOffsetsRequest, error: ErrorCode, context: Context) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=tuple(_all(topic, error) for topic in request.topics))


def _all(topic: ListOffsetsTopic, error: ErrorCode) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic.name, partitions=tuple(_nothing(each, error) for each in topic.partitions)
    )


async def _in_a_thread(
    found: dict[str, dict[int, _Answer | _Later]],
    refused: list[ListOffsetsTopicResponse],
    context: Context,
) -> ListOffsetsResponse:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(context.broker.partitions.threads, _response, found, refused)


def _response(
    found: dict[str, dict[int, _Answer | _Later]], refused: list[ListOffsetsTopicResponse]
) -> ListOffsetsResponse:
    looked_up = [
        ListOffsetsTopicResponse(
            name=name,
            partitions=tuple(each() if callable(each) else each for each in of_topic.values()),
        )
        for name, of_topic in found.items()
        if of_topic
    ]
    return ListOffsetsResponse(topics=(*looked_up, *refused))


def _look_up(
    topic: str,
    wanted: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: Context,
    topics: TopicsImage,
) -> _Answer | _Later:
    time, version = wanted.timestamp, context.version
    if time < 0 and version < _SINCE.get(time, version + 1):
        return _nothing(wanted, ErrorCode.UNSUPPORTED_VERSION)
    partition = context.broker.partitions.find(topic, wanted.partition_index, topics)
    if not isinstance(partition, Partition):
        return _nothing(wanted, partition)
    only_leader = request.replica_id != _DEBUGGING
    refused = check_leader(partition, wanted.current_leader_epoch, only_leader)
    if refused:
        return _nothing(wanted, refused)
    log = partition.log
    from_consumer = request.replica_id == _CONSUMER
    if not from_consumer:
        end = log.end_offset
    elif request.isolation_level == _READ_COMMITTED:
        end = log.last_stable_offset
    else:
        end = log.high_watermark
    not_known_yet = from_consumer and partition.epoch_start > log.high_watermark
    unavailable = (
        ErrorCode.OFFSET_NOT_AVAILABLE
        if version >= _KNOWS_NOT_AVAILABLE
        else ErrorCode.LEADER_NOT_AVAILABLE
    )
    match time:
        case -1:
            if not_known_yet:
                return _nothing(wanted, unavailable)
            return _told(wanted, OffsetAt(end, leader_epoch=partition.leader_epoch), version)
        case -2 | -4:
            return _told(wanted, log.earliest(), version)
        case -5 | -6:
            return _told(wanted, OffsetAt(-1), version)

    def later() -> _Answer:
        try:
            found = log.newest_record() if time == NEWEST else log.offset_at_time(time)
        except LogProblem as problem:
            return _nothing(wanted, problem.code)
        except BadData as problem:
            _logger.error("%s", problem)
            return _nothing(wanted, ErrorCode.CORRUPT_MESSAGE)
        if found is None or found.offset >= end:
            return _nothing(wanted, unavailable if not_known_yet else ErrorCode.NONE)
        return _told(wanted, found, version)

    return later


def _told(wanted: ListOffsetsPartition, found: OffsetAt, version: int) -> _Answer:
    epoch = found.leader_epoch if version >= _EPOCHS else None
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=-1 if epoch is None else epoch,
    )


def _nothing(wanted: ListOffsetsPartition, error: int) -> _Answer:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=error)

"""Fetch (key 1), versions 4-18."""

from __future__ import annotations

import asyncio

from kraftline.broker.context import Context
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kraftline.schema.lent import Lent
from kraftline.server.parts import FileRange
from kraftline.storage.log import OffsetOutOfRange


async def answer(request: FetchRequest, context: Context) -> FetchResponse:
    topics = context.broker.cache.image.topics
    end = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
    while True:
        size = 0
        responses = []
        for wanted in request.topics:
            name = wanted.topic
            if context.version >= 13:
                topic = topics.by_id.get(wanted.topic_id)
                name = "" if topic is None else topic.name
            found = [_read(name, each, context) for each in wanted.partitions]
            size += sum(
                each.records.length if isinstance(each.records, Lent) else 0 for each in found
            )
            responses.append(
                FetchableTopicResponse(
                    topic=wanted.topic, topic_id=wanted.topic_id, partitions=tuple(found)
                )
            )
        if size >= request.min_bytes or asyncio.get_running_loop().time() >= end:
            return FetchResponse(responses=tuple(responses))
        await asyncio.sleep(0.01)


def _read(topic: str, wanted: FetchPartition, context: Context) -> PartitionData:
    partition = context.broker.partitions.get(topic, wanted.partition)
    if partition is None or not partition.is_leader:
        return PartitionData(
            partition_index=wanted.partition,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            high_watermark=-1,
        )
    log = partition.log
    try:
        found = log.read(wanted.fetch_offset, wanted.partition_max_bytes, up_to=log.high_watermark)
    except OffsetOutOfRange:
        return PartitionData(
            partition_index=wanted.partition,
            error_code=ErrorCode.OFFSET_OUT_OF_RANGE,
            high_watermark=log.high_watermark,
        )
    records: object = b""
    if found.file is not None:
        file = found.file
        records = Lent(
            found.length,
            FileRange(file.fd, found.position, found.length, owner=file),
        )
    return PartitionData(
        partition_index=wanted.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.start_offset,
        aborted_transactions=None,
        records=records,  # type: ignore[arg-type]  # bytes that are sent from the file
    )

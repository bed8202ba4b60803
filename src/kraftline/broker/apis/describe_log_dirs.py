"""DescribeLogDirs (key 35), versions 1-5.

- Every log directory with the partitions that were asked for (null: all of them), their size in
  bytes and how far they are behind the high watermark; those on their way into it as well, with how
  far they are behind the log that they are to replace.
- The whole disk and what is free of it from version 4 on, whether the directory is cordoned from 5
  on.
- A directory that is offline: KAFKA_STORAGE_ERROR, and nothing else of it.
"""

from __future__ import annotations

import asyncio
import os

from kraftline.broker.context import Context
from kraftline.broker.moving import Move
from kraftline.metadata.access import Operation
from kraftline.schema.api.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.storage.log import Logs

_Wanted = set[tuple[str, int]] | None


async def answer(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    context.require(Operation.DESCRIBE)
    broker = context.broker
    wanted: _Wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, each) for topic in request.topics for each in topic.partitions}
    registration = broker.cache.image.cluster.brokers.get(broker.node_id)
    cordoned = () if registration is None else registration.cordoned_directories or ()
    moves = tuple(broker.partitions.moves)
    loop = asyncio.get_running_loop()
    results = await loop.run_in_executor(
        broker.partitions.threads,
        lambda: tuple(
            _describe(logs, wanted, key in cordoned, moves)
            for key, logs in tuple(broker.partitions.logs.items())
        ),
    )
    return DescribeLogDirsResponse(results=results)


def _describe(
    logs: Logs, wanted: _Wanted, is_cordoned: bool, moves: tuple[Move, ...]
) -> DescribeLogDirsResult:
    try:
        if logs.disk.failure is not None:
            raise OSError
        disk = os.statvfs(logs.path)
    except OSError:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=logs.path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs:
        if wanted is None or (log.topic, log.partition) in wanted:
            topics.setdefault(log.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=log.partition,
                    partition_size=log.size,
                    offset_lag=max(log.high_watermark - log.end_offset, 0),
                )
            )
    for move in moves:
        future = move.future
        if move.target is not logs or future is None:
            continue
        if wanted is None or (future.topic, future.partition) in wanted:
            topics.setdefault(future.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=future.partition,
                    partition_size=future.size,
                    offset_lag=move.lag,
                    is_future_key=True,
                )
            )
    return DescribeLogDirsResult(
        log_dir=logs.path,
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        ),
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
        is_cordoned=is_cordoned,
    )

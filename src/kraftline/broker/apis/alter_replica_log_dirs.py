"""AlterReplicaLogDirs (key 34), versions 1-2. KIP-113.

- A path that is no log directory of this broker: LOG_DIR_NOT_FOUND; one that has failed:
  KAFKA_STORAGE_ERROR. A replica that is there already needs nothing; on its way elsewhere it stays.
- The answer comes when the move has begun; DescribeLogDirs tells how far it is.
"""

from __future__ import annotations

import os

from kraftline.broker.context import Context
from kraftline.broker.partition import Partition
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.storage.log import Logs


def answer(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    if not context.may(Operation.ALTER, Resource.CLUSTER):
        return _forbidden(request)
    # A replica that is to go to several directories goes to the last.
    wanted = {
        (topic.name, number): each.path
        for each in request.dirs
        for topic in each.topics
        for number in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (name, number), path in wanted.items():
        error = _outcome(_directory(path, context), name, number, context)
        results.setdefault(name, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=number, error_code=error)
        )
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(found))
            for name, found in results.items()
        )
    )


def _forbidden(request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Of everything as it was asked for."""
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(
                        partition_index=number, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                    )
                    for number in topic.partitions
                ),
            )
            for each in request.dirs
            for topic in each.topics
        )
    )


def _directory(path: str, context: Context) -> Logs | None:
    if not os.path.isabs(path):
        return None
    wanted = os.path.normpath(path)
    return next(
        (each for each in context.broker.partitions.logs.values() if each.path == wanted), None
    )


def _outcome(logs: Logs | None, topic: str, number: int, context: Context) -> ErrorCode:
    if logs is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if logs.disk.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    broker = context.broker
    found = broker.partitions.find(topic, number, broker.cache.image.topics)
    if not isinstance(found, Partition):
        return found
    broker.partitions.moves.begin(found, logs)
    return ErrorCode.NONE

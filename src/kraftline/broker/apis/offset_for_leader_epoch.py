"""OffsetForLeaderEpoch (key 23), versions 2-4.

- The largest epoch that is known up to the one asked for, and the offset where it ends: by that a
  consumer or a replica finds out that its log is another. -1 and -1 where nothing is known.
- The same checks of the current leader epoch as for a fetch; only the leader answers.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.fetch_reading import check_leader
from kraftline.broker.partition import Partition
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def answer(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    topics = context.broker.cache.image.topics
    is_broker = context.may(Operation.CLUSTER_ACTION, Resource.CLUSTER)
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    _end(topic.topic, each, context, topics)
                    if is_broker or context.may(Operation.DESCRIBE, Resource.TOPIC, topic.topic)
                    else EpochEndOffset(
                        partition=each.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def failed(
    request: OffsetForLeaderEpochRequest, error: ErrorCode, context: Context
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    EpochEndOffset(partition=each.partition, error_code=error)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _end(
    topic: str, wanted: OffsetForLeaderPartition, context: Context, topics: TopicsImage
) -> EpochEndOffset:
    partition = context.broker.partitions.find(topic, wanted.partition, topics)
    if not isinstance(partition, Partition):
        return EpochEndOffset(partition=wanted.partition, error_code=partition)
    refused = check_leader(partition, wanted.current_leader_epoch, True)
    if refused:
        return EpochEndOffset(partition=wanted.partition, error_code=refused)
    found = partition.log.end_of_epoch(wanted.leader_epoch)
    if found is None:
        return EpochEndOffset(partition=wanted.partition)
    return EpochEndOffset(
        partition=wanted.partition, leader_epoch=found.epoch, end_offset=found.start_offset
    )

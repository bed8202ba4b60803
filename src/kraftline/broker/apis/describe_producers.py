"""DescribeProducers (key 61), version 0. KIP-664.

- What a partition that this broker leads knows of its producers: epoch, last sequence and time, and
  where an open transaction began (-1: none is open).
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.partition import Partition
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.topic_names import what_is_wrong_with
from kraftline.schema.api.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kraftline.schema.api.error_codes import ErrorCode


def answer(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name, partitions=_of(topic.name, topic.partition_indexes, context)
            )
            for topic in request.topics
        )
    )


def failed(
    request: DescribeProducersRequest, error: ErrorCode, context: Context
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(name=topic.name, partitions=_all(topic.partition_indexes, error, None))
            for topic in request.topics
        )
    )


def _of(name: str, numbers: tuple[int, ...], context: Context) -> tuple[PartitionResponse, ...]:
    wrong = what_is_wrong_with(name)
    if wrong is not None:
        message = f"Topic name is invalid: {wrong}"
        return _all(numbers, ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    if not context.may(Operation.READ, Resource.TOPIC, name):
        return _all(numbers, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if name not in context.broker.cache.image.topics.ids:
        message = "This server does not host this topic-partition."
        return _all(numbers, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return tuple(_partition(name, number, context) for number in numbers)


def _all(
    numbers: tuple[int, ...], error: ErrorCode, message: str | None
) -> tuple[PartitionResponse, ...]:
    return tuple(
        PartitionResponse(partition_index=number, error_code=error, error_message=message)
        for number in numbers
    )


def _partition(name: str, number: int, context: Context) -> PartitionResponse:
    broker = context.broker
    found = broker.partitions.find(name, number, broker.cache.image.topics)
    if not isinstance(found, Partition):
        return PartitionResponse(partition_index=number, error_code=found)
    if not found.is_leader:
        return PartitionResponse(
            partition_index=number, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
    return PartitionResponse(
        partition_index=number,
        active_producers=tuple(
            ProducerState(
                producer_id=each.id,
                producer_epoch=each.epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                current_txn_start_offset=each.txn_first_offset,
            )
            for each in found.log.producers.all()
        ),
    )

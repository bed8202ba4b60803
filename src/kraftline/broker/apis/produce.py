"""Produce (key 0), versions 3-13; announced from 0, as Kafka does."""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kraftline.storage.log import AppendRefused


def answer(request: ProduceRequest, context: Context) -> ProduceResponse | None:
    topics = context.broker.cache.image.topics
    responses = []
    for data in request.topic_data:
        name = data.name
        if context.version >= 13:
            topic = topics.by_id.get(data.topic_id)
            name = "" if topic is None else topic.name
        responses.append(
            TopicProduceResponse(
                name=data.name,
                topic_id=data.topic_id,
                partition_responses=tuple(
                    _append(name, each, context) for each in data.partition_data
                ),
            )
        )
    return ProduceResponse(responses=tuple(responses)) if request.acks else None


def _append(topic: str, data: PartitionProduceData, context: Context) -> PartitionProduceResponse:
    partition = context.broker.partitions.get(topic, data.index)
    if partition is None or not partition.is_leader:
        return PartitionProduceResponse(
            index=data.index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, base_offset=-1
        )
    try:
        appended = partition.log.append(data.records or b"", partition.leader_epoch)
    except AppendRefused as refused:
        return PartitionProduceResponse(
            index=data.index, error_code=refused.code, base_offset=-1, error_message=str(refused)
        )
    partition.advanced()
    return PartitionProduceResponse(
        index=data.index,
        base_offset=appended.first_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=appended.log_start_offset,
    )

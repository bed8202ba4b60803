"""Topics are made and removed."""

from __future__ import annotations

from kraftline.controller.decision import Decision
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.random_ids import random_uuid
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.topic_record import TopicRecord


def create_topics(
    image: MetadataImage, request: CreateTopicsRequest
) -> Decision[CreateTopicsResponse]:
    records: list[Versioned] = []
    results = [_create(image, topic, records) for topic in request.topics]
    return Decision(CreateTopicsResponse(topics=tuple(results)), records)


def _create(
    image: MetadataImage, topic: CreatableTopic, records: list[Versioned]
) -> CreatableTopicResult:
    if image.topics.named(topic.name) is not None:
        return CreatableTopicResult(
            name=topic.name,
            error_code=ErrorCode.TOPIC_ALREADY_EXISTS,
            error_message=f"Topic '{topic.name}' already exists.",
        )
    version = image.features.metadata_version
    assert version is not None
    usable = [each for each in image.cluster.brokers.values() if not each.fenced]
    leader = usable[0]
    topic_id = random_uuid()
    count = 1 if topic.num_partitions == -1 else topic.num_partitions
    records.append((TopicRecord(name=topic.name, topic_id=topic_id), 0))
    for number in range(count):
        record = PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=(leader.id,),
            isr=(leader.id,),
            leader=leader.id,
            leader_epoch=0,
            partition_epoch=0,
            directories=leader.directories[:1] if version.directory_assignment_supported else (),
        )
        records.append((record, version.partition_record_version))
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=count,
        replication_factor=1,
    )

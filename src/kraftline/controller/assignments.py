"""A broker tells in which of its directories replicas are (AssignReplicasToDirs).

- Each partition gets its own answer: unknown topics, partitions, and ones that the broker has no
  replica of, are refused.
- A replica in a directory that is not online is out of sync, and leads nothing.
"""

from __future__ import annotations

from kraftline.controller import leaders
from kraftline.controller.decision import Decision
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid


def assign_replicas_to_dirs(
    image: MetadataImage, request: AssignReplicasToDirsRequest, configs: TopicConfigs
) -> Decision[AssignReplicasToDirsResponse]:
    version = image.features.metadata_version
    assert version is not None
    if not version.directory_assignment_supported:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return _refused(ErrorCode.STALE_BROKER_EPOCH)
    records: list[Versioned] = []
    offline: dict[tuple[Uuid, int], None] = {}
    directories = []
    for directory in request.directories:
        is_online = broker.has_online_directory(directory.id)
        topics = []
        for topic in directory.topics:
            partitions = []
            for each in topic.partitions:
                number = each.partition_index
                code = _why_not(image, topic.topic_id, number, broker.id)
                if code is ErrorCode.NONE:
                    found = image.topics.by_id[topic.topic_id]
                    change = leaders.moved_to(
                        image, configs, found, number, broker.id, directory.id
                    )
                    records += () if change is None else (change,)
                    if not is_online:
                        offline[topic.topic_id, number] = None
                partitions.append(
                    AssignReplicasToDirsResponsePartitionData(
                        partition_index=number, error_code=code
                    )
                )
            topics.append(
                AssignReplicasToDirsResponseTopicData(
                    topic_id=topic.topic_id, partitions=tuple(partitions)
                )
            )
        directories.append(
            AssignReplicasToDirsResponseDirectoryData(id=directory.id, topics=tuple(topics))
        )
    records += leaders.after_moves(image, configs, broker.id, offline)
    response = AssignReplicasToDirsResponse(directories=tuple(directories))
    return Decision(response, records, is_atomic=False)


def _why_not(image: MetadataImage, topic_id: Uuid, number: int, broker: int) -> ErrorCode:
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partition(number)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def _refused(code: ErrorCode) -> Decision[AssignReplicasToDirsResponse]:
    return Decision(AssignReplicasToDirsResponse(error_code=code))

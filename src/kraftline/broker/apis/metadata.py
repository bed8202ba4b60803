"""Metadata (key 3), versions 0-13."""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def answer(request: MetadataRequest, context: Context) -> MetadataResponse:
    image = context.broker.cache.image
    brokers = []
    for broker in image.cluster.brokers.values():
        at = broker.listener(context.listener)
        if at is not None and not broker.fenced:
            brokers.append(
                MetadataResponseBroker(
                    node_id=broker.id, host=at.host, port=at.port, rack=broker.rack
                )
            )
    if request.topics is None:
        names = sorted(image.topics.ids)
    else:
        names = [each.name or "" for each in request.topics]
    topics = []
    for name in names:
        topic = image.topics.named(name)
        if topic is None:
            topics.append(
                MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
            continue
        topics.append(
            MetadataResponseTopic(
                name=name,
                topic_id=topic.id,
                partitions=tuple(
                    MetadataResponsePartition(
                        partition_index=number,
                        leader_id=partition.leader,
                        leader_epoch=partition.leader_epoch,
                        replica_nodes=partition.replicas,
                        isr_nodes=partition.isr,
                    )
                    for number, partition in topic.items()
                ),
            )
        )
    return MetadataResponse(
        brokers=tuple(brokers),
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.node_id,
        topics=tuple(topics),
    )

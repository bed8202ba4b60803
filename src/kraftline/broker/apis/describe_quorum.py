"""DescribeQuorum (key 55), versions 0-2. KIP-595, KIP-836, KIP-853.

- Asked for the metadata partition, and for nothing else: who leads it, what is committed, and how
  far each voter is. This node is the only voter, so it is never behind.
- From version 1 on with times, from version 2 on with directory ids and addresses.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import ZERO
from kraftline.storage.names import METADATA_TOPIC

_UNKNOWN: Final = "This server does not host this topic-partition."


def answer(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    context.require(Operation.DESCRIBE)
    wanted = [
        (topic.topic_name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    if wanted != [(METADATA_TOPIC, 0)] or len(request.topics) != 1:
        return _nothing(request)
    broker = context.broker
    log = broker.controller.log
    now = broker.clock()
    tells_where = context.version >= 2
    directory = ZERO
    if tells_where and log.voters is not None:
        directory = log.voters.voters[0].voter_directory_id
    node = Node(node_id=broker.node_id, listeners=_listeners(context))
    return DescribeQuorumResponse(
        topics=(
            DescribeQuorumResponseTopicData(
                topic_name=METADATA_TOPIC,
                partitions=(
                    DescribeQuorumResponsePartitionData(
                        leader_id=broker.node_id,
                        leader_epoch=log.epoch,
                        high_watermark=log.high_watermark,
                        current_voters=(
                            ReplicaState(
                                replica_id=broker.node_id,
                                replica_directory_id=directory,
                                log_end_offset=log.end_offset,
                                last_fetch_timestamp=now,
                                last_caught_up_timestamp=now,
                            ),
                        ),
                    ),
                ),
            ),
        ),
        nodes=(node,) if tells_where else (),
    )


def _listeners(context: Context) -> tuple[Listener, ...]:
    broker = context.broker
    voters = broker.controller.log.voters
    if voters is not None:
        return tuple(
            Listener(name=each.name, host=each.host, port=each.port)
            for each in voters.voters[0].endpoints
        )
    registered = broker.cache.image.cluster.controllers.get(broker.node_id)
    return tuple(
        Listener(name=each.name, host=each.host, port=each.port)
        for each in (() if registered is None else registered.listeners)
    )


def _nothing(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=tuple(
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    DescribeQuorumResponsePartitionData(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=_UNKNOWN,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )

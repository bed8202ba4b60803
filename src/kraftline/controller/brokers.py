"""Brokers come, stay, and go: registration, heartbeats, fencing.

- A registration starts fenced; its epoch is the offset that its record gets.
- A broker that has read the log up to its own registration and does not ask to be fenced is
  unfenced; partitions that have no leader and could have this one get it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftline.controller.decision import Decision
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.partition import NO_LEADER
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.metadata.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)

_UNFENCE = -1


def register(
    image: MetadataImage, request: BrokerRegistrationRequest, end_offset: int
) -> Decision[BrokerRegistrationResponse]:
    """`end_offset` is where the next record goes."""
    version = image.features.metadata_version
    assert version is not None
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=end_offset,
        end_points=tuple(
            BrokerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in request.listeners
        ),
        features=tuple(
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ),
        rack=request.rack,
        fenced=True,
        log_dirs=request.log_dirs if version.directory_assignment_supported else (),
    )
    return Decision(
        BrokerRegistrationResponse(broker_epoch=end_offset),
        [(record, version.register_broker_record_version)],
    )


def heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest
) -> Decision[BrokerHeartbeatResponse]:
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Decision(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    caught_up = request.current_metadata_offset >= broker.epoch
    if not broker.fenced or request.want_fence or not caught_up:
        return Decision(BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=broker.fenced))
    records: list[Versioned] = [
        (
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, fenced=_UNFENCE
            ),
            0,
        ),
        *_led_again(image, broker.id),
    ]
    return Decision(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False), records)


def _led_again(image: MetadataImage, broker: int) -> Iterator[Versioned]:
    version = image.features.metadata_version
    assert version is not None
    for topic in image.topics.by_id.values():
        for number, partition in topic.items():
            if partition.leader == NO_LEADER and broker in partition.isr:
                record = PartitionChangeRecord(
                    partition_id=number, topic_id=topic.id, leader=broker
                )
                yield record, version.partition_change_record_version

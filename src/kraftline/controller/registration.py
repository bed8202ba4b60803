"""A broker registers (BrokerRegistration).

- It must belong to the cluster, support every finalized feature, and name log directories that no
  other broker has.
- A new incarnation starts fenced; its epoch is the offset at which the batch of its registration
  begins. While the one before is alive, it is refused.
- The same incarnation may register again, to change what it said: its epoch stays.
- One whose last words were not a clean stop may have lost records: it is eligible to lead nothing.
"""

from __future__ import annotations

import msgspec

from kraftline.controller import leaders
from kraftline.controller.decision import Decision
from kraftline.controller.refusal import Refusal
from kraftline.controller.sessions import Session, Sessions
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.features import METADATA_VERSION, MetadataVersion
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.registrations import BrokerRegistration
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraftline.schema.uuids import Uuid

# Ids below this one stand for something that is no directory.
_RESERVED = Uuid(bytes(15) + b"\x64")


class Registering(msgspec.Struct, frozen=True, kw_only=True):
    """Where a registration happens: `end_offset` is where its first record will go."""

    cluster_id: str
    configs: TopicConfigs
    sessions: Sessions
    end_offset: int
    now: int


def register(
    image: MetadataImage, request: BrokerRegistrationRequest, at: Registering
) -> Decision[BrokerRegistrationResponse]:
    version = image.features.metadata_version
    assert version is not None
    before = image.cluster.brokers.get(request.broker_id)
    is_same = before is not None and before.incarnation_id == request.incarnation_id
    try:
        _check(image, request, at, before, version)
    except Refusal as refusal:
        return Decision(BrokerRegistrationResponse(error_code=refusal.code))
    records: list[Versioned] = []
    if not is_same:
        records += _clean_up(image, request, at, before)
    epoch = before.epoch if before is not None and is_same else at.end_offset
    record = _record(request, version, epoch)
    session = Session(registered_at=at.end_offset + len(records))
    if before is not None and is_same:
        known = at.sessions.get(before.id)
        if known is not None:
            session = msgspec.structs.replace(session, last_contact=known.last_contact)
        record = msgspec.structs.replace(
            record, fenced=before.fenced, in_controlled_shutdown=before.in_controlled_shutdown
        )
    records.append((record, version.register_broker_record_version))
    return Decision(
        BrokerRegistrationResponse(broker_epoch=epoch),
        records,
        at.sessions.having(request.broker_id, session),
        is_atomic=False,
    )


def _check(
    image: MetadataImage,
    request: BrokerRegistrationRequest,
    at: Registering,
    before: BrokerRegistration | None,
    version: MetadataVersion,
) -> None:
    if request.cluster_id != at.cluster_id:
        raise Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {at.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    if (
        before is not None
        and before.incarnation_id != request.incarnation_id
        and at.sessions.is_live(before.id, at.now)
    ):
        raise Refusal(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently "
            "restarted this should self-resolve once the heartbeat manager expires the broker's "
            "session.",
        )
    if request.is_migrating_zk_broker:
        raise Refusal(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        )
    if version.directory_assignment_supported:
        _check_directories(image, request)
    _check_features(image, request, version)


def _check_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    if not request.log_dirs:
        raise _invalid("No directories specified in request")
    if any(each < _RESERVED for each in request.log_dirs):
        raise _invalid("Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise _invalid("Duplicate directory ID in request")
    for other in image.cluster.brokers.values():
        for directory in request.log_dirs:
            if other.id != request.broker_id and directory in other.directories:
                raise _invalid(
                    f"Broker {other.id} is already registered with directory {directory}"
                )


def _check_features(
    image: MetadataImage, request: BrokerRegistrationRequest, version: MetadataVersion
) -> None:
    finalized = {METADATA_VERSION: version.level, **image.features.levels}
    supported = {
        each.name: (each.min_supported_version, each.max_supported_version)
        for each in request.features
    }
    for name, (least, most) in supported.items():
        _check_level(name, finalized.get(name, 0), least, most)
    if METADATA_VERSION not in supported:
        raise _invalid("Request features do not contain 'metadata.version'")
    for name, level in finalized.items():
        if level != 0 and name not in supported:
            _check_level(name, level, 0, 0)


def _check_level(name: str, level: int, least: int, most: int) -> None:
    if not least <= level <= most:
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} of "
            f"{name}. The broker wants a version between {least} and {most}, inclusive.",
        )


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REGISTRATION, message)


def _clean_up(
    image: MetadataImage,
    request: BrokerRegistrationRequest,
    at: Registering,
    before: BrokerRegistration | None,
) -> list[Versioned]:
    """What an earlier incarnation left behind."""
    was_clean = before is not None and before.epoch == request.previous_broker_epoch
    after = leaders.after_leaving
    if image.features.elr_enabled and not was_clean:
        after = leaders.after_losing_data
    return list(after(image, at.configs, request.broker_id))


def _record(
    request: BrokerRegistrationRequest, version: MetadataVersion, epoch: int
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
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

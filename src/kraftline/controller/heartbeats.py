"""Brokers are unfenced, fenced, and let go (BrokerHeartbeat, and the end of a session).

- A fenced broker that has read its own registration and does not want to be fenced is unfenced.
- An unfenced one that wants to shut down goes at once if it leads nothing; else it is in
  controlled shutdown: its leaderships move, and it goes when all active brokers know.
- Whoever goes, or is not heard of for a session, is fenced.
"""

from __future__ import annotations

import enum

import msgspec

from kraftline.controller import leaders
from kraftline.controller.decision import Decision
from kraftline.controller.sessions import Session, Sessions
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.registrations import BrokerRegistration
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraftline.schema.uuids import Uuid

_FENCE, _UNFENCE = 1, -1
_IN_SHUTDOWN = 1
# The oldest version of the record that can say each kind of change.
_FENCING_VERSION, _SHUTDOWN_VERSION, _DIRECTORIES_VERSION, _CORDONED_VERSION = 0, 1, 2, 3


class State(enum.Enum):
    FENCED = enum.auto()
    UNFENCED = enum.auto()
    CONTROLLED_SHUTDOWN = enum.auto()
    SHUTDOWN_NOW = enum.auto()

    @property
    def is_fenced(self) -> bool:
        return self in (State.FENCED, State.SHUTDOWN_NOW)


class Beating(msgspec.Struct, frozen=True, kw_only=True):
    """Where a heartbeat happens: `end_offset` is where the next record will go."""

    configs: TopicConfigs
    sessions: Sessions
    end_offset: int
    now: int


def heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest, at: Beating
) -> Decision[BrokerHeartbeatResponse]:
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Decision(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    session = at.sessions.get(broker.id) or Session(registered_at=broker.epoch)
    current = _state(broker, session)
    following = _next_state(image, request, at.sessions, session, current)
    records: list[Versioned] = []
    if following is not current:
        records += _moved(image, at.configs, broker, following)
    shutdown_offset = -1 if following.is_fenced else session.shutdown_offset
    if following is State.CONTROLLED_SHUTDOWN and shutdown_offset < 0:
        # What the others must have read before the broker may go.
        shutdown_offset = at.end_offset + len(records) - 1
    records += _directories(image, at.configs, broker, request)
    session = msgspec.structs.replace(
        session,
        last_contact=at.now,
        # One whose registration changes counts as having read nothing until it is heard again.
        metadata_offset=-1 if _changes(records) else request.current_metadata_offset,
        shutdown_offset=shutdown_offset,
    )
    return Decision(
        BrokerHeartbeatResponse(
            is_caught_up=request.current_metadata_offset >= session.registered_at,
            is_fenced=following.is_fenced,
            should_shut_down=following is State.SHUTDOWN_NOW,
        ),
        records,
        at.sessions.having(broker.id, session),
        is_atomic=False,
    )


def fence_stale(
    image: MetadataImage, configs: TopicConfigs, sessions: Sessions, now: int
) -> Decision[int | None]:
    """Fence one broker whose session ended; which one it was. One at a time, so that each sees
    what became of the one before."""
    stale = sessions.stale(image, now)
    if stale is None:
        return Decision(None)
    records = _fenced(image, configs, image.cluster.brokers[stale])
    return Decision(stale, records, sessions.ended(stale), is_atomic=False)


def _changes(records: list[Versioned]) -> bool:
    return any(isinstance(record, BrokerRegistrationChangeRecord) for record, _ in records)


def _state(broker: BrokerRegistration, session: Session) -> State:
    if session.is_shutting_down:
        return State.CONTROLLED_SHUTDOWN
    return State.FENCED if broker.fenced else State.UNFENCED


def _next_state(
    image: MetadataImage,
    request: BrokerHeartbeatRequest,
    sessions: Sessions,
    session: Session,
    current: State,
) -> State:
    if current is State.FENCED:
        if request.want_shut_down:
            return State.SHUTDOWN_NOW
        is_caught_up = request.current_metadata_offset >= session.registered_at
        return State.FENCED if request.want_fence or not is_caught_up else State.UNFENCED
    if current is State.UNFENCED:
        if request.want_fence:
            return State.SHUTDOWN_NOW if request.want_shut_down else State.FENCED
        if not request.want_shut_down:
            return State.UNFENCED
        if leaders.leads_any(image, request.broker_id):
            return State.CONTROLLED_SHUTDOWN
        return State.SHUTDOWN_NOW
    if leaders.leads_any(image, request.broker_id):
        return State.CONTROLLED_SHUTDOWN
    is_known = session.shutdown_offset <= sessions.lowest_active_offset(image)
    return State.SHUTDOWN_NOW if is_known else State.CONTROLLED_SHUTDOWN


def _moved(
    image: MetadataImage, configs: TopicConfigs, broker: BrokerRegistration, to: State
) -> list[Versioned]:
    if to is State.UNFENCED:
        unfenced = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=_UNFENCE
        )
        return [
            (unfenced, _FENCING_VERSION),
            *leaders.after_coming(image, configs, broker.id),
        ]
    if to is not State.CONTROLLED_SHUTDOWN:
        return _fenced(image, configs, broker)
    records: list[Versioned] = []
    if not broker.in_controlled_shutdown:
        leaving = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=_IN_SHUTDOWN
        )
        records.append((leaving, _SHUTDOWN_VERSION))
    return [*records, *leaders.after_leaving(image, configs, broker.id)]


def _fenced(
    image: MetadataImage, configs: TopicConfigs, broker: BrokerRegistration
) -> list[Versioned]:
    fenced = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE
    )
    return [*leaders.after_leaving(image, configs, broker.id), (fenced, _FENCING_VERSION)]


def _directories(
    image: MetadataImage,
    configs: TopicConfigs,
    broker: BrokerRegistration,
    request: BrokerHeartbeatRequest,
) -> list[Versioned]:
    """What changes because directories failed, or take no new replicas any more."""
    version = image.features.metadata_version
    assert version is not None
    records: list[Versioned] = []
    lost = frozenset(request.offline_log_dirs).intersection(broker.directories)
    if lost and version.directory_assignment_supported:
        records += leaders.after_losing_directories(image, configs, broker.id, lost)
        left = tuple(each for each in broker.directories if each not in lost)
        records.append((_change(broker, log_dirs=left), _DIRECTORIES_VERSION))
    cordoned = request.cordoned_log_dirs
    if cordoned is not None and version.cordoned_log_dirs_supported:
        before = broker.cordoned_directories
        if before is None or set(before) != set(cordoned):
            records.append((_change(broker, cordoned_log_dirs=cordoned), _CORDONED_VERSION))
    return records


def _change(
    broker: BrokerRegistration,
    *,
    log_dirs: tuple[Uuid, ...] = (),
    cordoned_log_dirs: tuple[Uuid, ...] | None = None,
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned_log_dirs,
    )

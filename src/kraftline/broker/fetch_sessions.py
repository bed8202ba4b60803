"""Fetch sessions (KIP-227): a client names its partitions once, then only what changes.

- Epoch 0 asks for a session with all partitions of the request, -1 for an answer without one;
  either closes the session that it names. Any other epoch goes on with one.
- In a session only partitions are answered that have something new: records, another high
  watermark or start offset, an error. One that had records goes behind the others, so that all
  have their turn when limits are small.
- There are so many sessions at most. A new one takes the place of one that nobody used for two
  minutes, or, once that is old enough, of one with no more partitions; else it gets none (id 0).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import FetchPartition, FetchRequest, PartitionData
from kraftline.schema.lent import Lent
from kraftline.schema.uuids import Uuid

NO_SESSION: Final = 0
_INITIAL: Final = 0
_FINAL: Final = -1
_LAST: Final = 2**31 - 1
_TOPIC_IDS: Final = 13
_EVICTION_MS: Final = 120_000

# A topic's id from version 13 on, its name before; and the partition.
Key: TypeAlias = "tuple[Uuid | str, int]"
Wanted: TypeAlias = "dict[Key, FetchPartition]"


class _Kept(msgspec.Struct, gc=False):
    """A partition of a session, and what its client was told of it last."""

    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def has_news(self, data: PartitionData) -> bool:
        """Whether the client has to be told."""
        return (
            records_size(data) > 0
            or data.diverging_epoch.epoch >= 0
            or self.high_watermark != data.high_watermark
            or self.log_start_offset != data.log_start_offset
            or data.error_code != 0
        )

    def is_news(self, data: PartitionData) -> bool:
        """Likewise; what it is told then is noted."""
        news = self.has_news(data)
        self.log_start_offset = data.log_start_offset
        # After an error its end is news as well.
        self.high_watermark = -1 if data.error_code else data.high_watermark
        return news


class Session:
    def __init__(self, id: int, uses_ids: bool, is_replica: bool, now: int) -> None:
        self.id = id
        self.epoch = 1
        self.uses_ids = uses_ids
        self.is_replica = is_replica
        self.created = self.used = now
        self.kept: dict[Key, _Kept] = {}


class Plan(msgspec.Struct, frozen=True):
    """What a request asks for. `error` is of the whole request. `session` is one to go on with,
    at an `epoch`; `wants_session` one to be made."""

    wanted: Wanted
    error: int = ErrorCode.NONE
    session: Session | None = None
    epoch: int = 0
    wants_session: bool = False


class FetchSessions:
    """All sessions of a broker, at most `slots`; `clock` gives ms."""

    def __init__(self, slots: int, clock: Callable[[], int]) -> None:
        self._slots = slots
        self._clock = clock
        self._sessions: dict[int, Session] = {}  # those used last are at the end

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, version: int) -> Plan:
        """Take a request in: which partitions are to be read for it."""
        uses_ids = version >= _TOPIC_IDS
        wanted: Wanted = {
            (topic.topic_id if uses_ids else topic.topic, each.partition): each
            for topic in request.topics
            for each in topic.partitions
        }
        id, epoch = request.session_id, request.session_epoch
        if epoch in (_INITIAL, _FINAL):
            if id != NO_SESSION:
                self._sessions.pop(id, None)
            return Plan(wanted, wants_session=epoch == _INITIAL)
        session = self._sessions.get(id)
        if session is None:
            return Plan({}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return Plan({}, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            return Plan({}, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        kept = session.kept
        for key, each in wanted.items():
            if key in kept:
                kept[key].wanted = each
            else:
                kept[key] = _Kept(each)
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                kept.pop((topic.topic_id if uses_ids else topic.topic, partition), None)
        if not kept:
            del self._sessions[id]
            return Plan(wanted)
        session.epoch = 1 if epoch == _LAST else epoch + 1
        session.used = self._clock()
        self._sessions[id] = self._sessions.pop(id)
        return Plan({key: each.wanted for key, each in kept.items()}, NONE, session, session.epoch)

    def told(
        self, plan: Plan, found: dict[Key, PartitionData], version: int, is_replica: bool
    ) -> tuple[int, int, dict[Key, PartitionData]]:
        """The error, the session's id, and what of the answers is to be sent."""
        if plan.error:
            return plan.error, NO_SESSION, {}
        session = plan.session
        if session is None:
            if not plan.wants_session:
                return NONE, NO_SESSION, found
            id = self._begin(plan, found, version >= _TOPIC_IDS, is_replica)
            return NONE, id, found
        if session.epoch != plan.epoch:
            # Somebody else went on with it while this request waited.
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, {}
        news = {}
        for key, data in found.items():
            kept = session.kept[key]
            if kept.is_news(data):
                news[key] = data
                if records_size(data):
                    session.kept[key] = session.kept.pop(key)
        return NONE, session.id, news

    def news(self, plan: Plan, found: dict[Key, PartitionData]) -> dict[Key, PartitionData]:
        """What `told` would send, without anything being told yet."""
        session = plan.session
        if plan.error:
            return {}
        if session is None:
            return found
        return {
            key: data
            for key, data in found.items()
            if key in session.kept and session.kept[key].has_news(data)
        }

    def told_nothing(self, plan: Plan) -> tuple[int, int]:
        """The error and the session's id of an answer that a client has to wait for: none begins
        with it, and what was found is news the next time."""
        if plan.error:
            return plan.error, NO_SESSION
        session = plan.session
        if session is None:
            return NONE, NO_SESSION
        if session.epoch != plan.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id
        return NONE, session.id

    def _begin(
        self, plan: Plan, found: dict[Key, PartitionData], uses_ids: bool, is_replica: bool
    ) -> int:
        now = self._clock()
        if len(self._sessions) >= self._slots and not self._evict(is_replica, len(found), now):
            return NO_SESSION
        id = random.randrange(1, _LAST)
        while id in self._sessions:
            id = random.randrange(1, _LAST)
        session = self._sessions[id] = Session(id, uses_ids, is_replica, now)
        for key, data in found.items():
            session.kept[key] = _Kept(plan.wanted[key], data.high_watermark, data.log_start_offset)
        return id

    def _evict(self, is_replica: bool, size: int, now: int) -> bool:
        """Make room for a session, if there is one that is worth less."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now - oldest.used <= _EVICTION_MS:
            oldest = min(self._evictable(is_replica, now), key=_worth, default=None)
            if oldest is None or (is_replica, size, 0) < _worth(oldest):
                return False
        del self._sessions[oldest.id]
        return True

    def _evictable(self, is_replica: bool, now: int) -> Iterable[Session]:
        """A replica's session is worth more than a client's, unless that has become old."""
        for each in self._sessions.values():
            if now - each.created > _EVICTION_MS or (is_replica and not each.is_replica):
                yield each


NONE: Final = ErrorCode.NONE


def _worth(session: Session) -> tuple[bool, int, int]:
    return session.is_replica, len(session.kept), session.id


def records_size(data: PartitionData) -> int:
    records: object = data.records
    if isinstance(records, Lent):
        return records.length
    return len(records) if isinstance(records, bytes) else 0

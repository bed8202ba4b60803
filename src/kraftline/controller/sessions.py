"""When each broker was last heard of: what a controller keeps in memory only.

A broker that is silent for longer than the session timeout is fenced. One that is shutting down
may go when every other active broker has read the offset at which its leaderships were moved.
"""

from __future__ import annotations

import msgspec
from immutables import Map

from kraftline.metadata.image import MetadataImage

_FAR = (1 << 63) - 1


class Session(msgspec.Struct, frozen=True, gc=False):
    """Times are ms of a clock that never jumps. `last_contact` is None until the registration that
    counts was heard of. `metadata_offset` is how far the broker has read, `registered_at` the
    offset of its registration, `shutdown_offset` that of the records that moved its leaderships
    away: -1 unless it is in controlled shutdown."""

    last_contact: int | None = None
    metadata_offset: int = -1
    registered_at: int = -1
    shutdown_offset: int = -1

    @property
    def is_shutting_down(self) -> bool:
        return self.shutdown_offset >= 0


class Sessions(msgspec.Struct, frozen=True, gc=False):
    timeout_ms: int
    by_broker: Map[int, Session] = Map()

    @classmethod
    def activated(cls, image: MetadataImage, timeout_ms: int, now: int) -> Sessions:
        """Those of a controller that starts: every unfenced broker has a whole session to say
        something."""
        found = {
            broker.id: Session(None if broker.fenced else now, registered_at=broker.epoch)
            for broker in image.cluster.brokers.values()
        }
        return cls(timeout_ms, Map(found))

    def get(self, broker: int) -> Session | None:
        return self.by_broker.get(broker)

    def having(self, broker: int, session: Session) -> Sessions:
        return Sessions(self.timeout_ms, self.by_broker.set(broker, session))

    def expired(self, broker: int) -> Sessions:
        """The broker was last heard of too long ago, whatever the truth is."""
        session = self.by_broker.get(broker)
        if session is None or session.last_contact is None:
            return self
        return self.having(broker, msgspec.structs.replace(session, last_contact=-_FAR))

    def ended(self, broker: int) -> Sessions:
        """The broker must be heard of before it has a session again."""
        return self.having(
            broker, msgspec.structs.replace(self.by_broker[broker], last_contact=None)
        )

    def without(self, broker: int) -> Sessions:
        """The broker is registered no more."""
        if broker not in self.by_broker:
            return self
        return Sessions(self.timeout_ms, self.by_broker.delete(broker))

    def is_live(self, broker: int, now: int) -> bool:
        """Whether the broker was heard of in time, be it fenced or not."""
        session = self.by_broker.get(broker)
        return (
            session is not None
            and session.last_contact is not None
            and session.last_contact + self.timeout_ms >= now
        )

    def stale(self, image: MetadataImage, now: int) -> int | None:
        """The broker that has been silent for longest, if that is too long; as in Kafka it may be
        fenced already."""
        silent = [
            (session.last_contact, broker)
            for broker, session in self.by_broker.items()
            if session.last_contact is not None
            and not self.is_live(broker, now)
            and broker in image.cluster.brokers
        ]
        return min(silent)[1] if silent else None

    def lowest_active_offset(self, image: MetadataImage) -> int:
        """What all brokers that are neither fenced nor shutting down have read."""
        offsets = [
            session.metadata_offset
            for broker, session in self.by_broker.items()
            if not session.is_shutting_down and _is_unfenced(image, broker)
        ]
        return min(offsets, default=_FAR)


def _is_unfenced(image: MetadataImage, broker: int) -> bool:
    registered = image.cluster.brokers.get(broker)
    return registered is not None and not registered.fenced

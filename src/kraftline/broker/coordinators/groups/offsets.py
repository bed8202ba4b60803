"""The offsets that groups have committed, as the last record of each says."""

from __future__ import annotations

import msgspec

from kraftline.broker.coordinators.state import Producer
from kraftline.schema.coordinator.group.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from kraftline.schema.coordinator.group.offset_commit import OffsetCommitKey, OffsetCommitValue


class Committed(msgspec.Struct, frozen=True, gc=False):
    """An offset of a group; `expires_at` is -1 unless the client asked for a time of its own."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int


class Offsets:
    """By group, then by topic and partition. Those of open transactions are kept apart, by
    producer, until these end."""

    def __init__(self) -> None:
        self.of: dict[str, dict[tuple[str, int], Committed]] = {}
        self.pending: dict[int, dict[tuple[str, str, int], Committed | None]] = {}

    def replay(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        producer: Producer | None,
    ) -> None:
        committed = None
        if value is not None:
            committed = Committed(
                value.offset,
                -1 if isinstance(value, LegacyOffsetCommitValue) else value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                -1 if isinstance(value, LegacyOffsetCommitValue) else value.expire_timestamp,
            )
        if producer is None:
            self._put(key.group, (key.topic, key.partition), committed)
        else:
            waiting = self.pending.setdefault(producer.id, {})
            waiting[key.group, key.topic, key.partition] = committed

    def end_transaction(self, producer: Producer, *, is_committed: bool) -> None:
        waiting = self.pending.pop(producer.id, {})
        if is_committed:
            for (group, topic, partition), committed in waiting.items():
                self._put(group, (topic, partition), committed)

    def _put(self, group: str, where: tuple[str, int], committed: Committed | None) -> None:
        offsets = self.of.setdefault(group, {})
        if committed is not None:
            offsets[where] = committed
            return
        offsets.pop(where, None)
        if not offsets:
            del self.of[group]

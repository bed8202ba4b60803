"""The offsets that groups have committed, as the last record of each says.

Those of open transactions are kept apart until these end. What is newer counts where a group
commits inside and outside of transactions: an offset that was written before the one that is there
does not replace it, whenever its transaction ends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kraftline.broker.coordinators.state import Change, Producer
from kraftline.schema.coordinator.group.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from kraftline.schema.coordinator.group.offset_commit import OffsetCommitKey, OffsetCommitValue
from kraftline.schema.types import ZERO
from kraftline.schema.uuids import Uuid
from kraftline.schema.wire import Writer

_offset = struct.Struct(">hqi").pack
_offset_with_expiry = struct.Struct(">hqh").pack
_times = struct.Struct(">qq").pack
_time = struct.Struct(">q").pack
_length = struct.Struct(">h").pack
_number = struct.Struct(">i").pack
_NEWEST: Final = 4
# A value of that version without a note: version, offset, leader epoch, how long the note is, when
# it was committed, and one tagged field of 16 bytes.
_PLAIN: Final = struct.Struct(">hqibq3s16s")
_PLAIN_SIZE: Final = _PLAIN.size
_read_plain = _PLAIN.unpack
_write_plain = _PLAIN.pack
_NO_NOTE: Final = 1
_TOPIC_ID: Final = b"\1\0\x10"
_WITH_EXPIRY: Final = 1  # the one version that has a place for it
NEVER: Final = -1


class Committed(msgspec.Struct, gc=False):
    """An offset of a group; `expires_at` is -1 unless the client asked for a time of its own. With
    `topic_id` zero it counts for whatever topic has the name. `order` grows with the log."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int = NEVER
    topic_id: Uuid = ZERO
    order: int = 0

    def is_of(self, topic_id: Uuid) -> bool:
        """Is it of this topic, or of one of the same name that is gone?"""
        return topic_id in (self.topic_id, ZERO) or self.topic_id == ZERO


Topics = dict[str, dict[int, Committed]]


class Offsets:
    """`of` is by group, topic and partition; `pending` by producer. `count` is how many of `of`."""

    def __init__(self) -> None:
        self.of: dict[str, Topics] = {}
        self.pending: dict[int, dict[tuple[str, str, int], Committed]] = {}
        self.count = 0
        self._order = 0
        self._heads: dict[bytes, tuple[str, dict[int, Committed]]] = {}
        self._ids: dict[bytes, Uuid] = {}
        # Producers with open transactions, by group and partition.
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    def get(self, group: str, topic: str, partition: int) -> Committed | None:
        topics = self.of.get(group)
        if topics is None:
            return None
        found = topics.get(topic)
        return None if found is None else found.get(partition)

    def is_pending(self, group: str, topic: str, partition: int) -> bool:
        """Is there an offset in a transaction that has not ended?"""
        found = self._open.get(group)
        return found is not None and (topic, partition) in found

    def has_open_transaction(self, group: str) -> bool:
        return group in self._open

    def everything(self, group: str) -> Iterator[tuple[str, int]]:
        """Each partition once that the group has an offset of, committed or pending."""
        topics = self.of.get(group, {})
        for topic, partitions in topics.items():
            for partition in partitions:
                yield topic, partition
        for topic, partition in self._open.get(group, ()):
            if partition not in topics.get(topic, ()):
                yield topic, partition

    def of_topic(self, topic: str, topic_id: Uuid) -> list[Change]:
        """The records that remove what all groups have of a topic that is gone."""
        changes = [
            tombstone(group, topic, partition)
            for group, topics in self.of.items()
            for partition, committed in topics.get(topic, {}).items()
            if committed.is_of(topic_id)
        ]
        known = {(each.key.group, each.key.partition) for each in changes}  # type: ignore[attr-defined]  # keys of offsets, just made
        for waiting in self.pending.values():
            for (group, name, partition), committed in waiting.items():
                where = group, partition
                if name == topic and where not in known and committed.is_of(topic_id):
                    known.add(where)
                    changes.append(tombstone(group, topic, partition))
        return changes

    def replay(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        producer: Producer | None,
    ) -> None:
        group, topic, partition = key.group, key.topic, key.partition
        self._order += 1
        if value is None:
            self._remove(group, topic, partition)
            return
        if isinstance(value, LegacyOffsetCommitValue):
            committed = Committed(
                value.offset, -1, value.metadata, value.commit_timestamp, order=self._order
            )
        else:
            committed = Committed(
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
                value.topic_id,
                self._order,
            )
        if producer is None:
            self._put(group, topic, partition, committed)
            return
        self.pending.setdefault(producer.id, {})[group, topic, partition] = committed
        of_group = self._open.setdefault(group, {})
        of_group.setdefault((topic, partition), set()).add(producer.id)

    def commit(self, group: str, commits: Sequence[tuple[str, int, Committed]]) -> None:
        """What `replay` does with the records of these offsets, without making them first."""
        topics = self.of.get(group)
        if topics is None:
            topics = self.of[group] = {}
        for topic, partition, committed in commits:
            self._order += 1
            committed.order = self._order
            partitions = topics.get(topic)
            if partitions is None:
                partitions = topics[topic] = {}
            if partition not in partitions:
                self.count += 1
            partitions[partition] = committed

    def load(self, key: bytes, value: bytes) -> str | None:
        """What `replay` does with a record that is read from the log; its group. None: it is not
        as most that are written today (without a note, with a topic's id), and `replay` has to see
        to it."""
        if len(value) != _PLAIN_SIZE:
            return None
        version, offset, leader_epoch, note, when, tags, raw = _read_plain(value)
        if version != _NEWEST or note != _NO_NOTE or tags != _TOPIC_ID:
            return None
        head = key[:-4]
        found = self._heads.get(head) or self._head(head)
        if found is None:
            return None
        group, partitions = found
        topic_id = self._ids.get(raw)
        if topic_id is None:
            topic_id = self._ids[raw] = Uuid(raw)
        partition = int.from_bytes(key[-4:], "big", signed=True)
        if partition not in partitions:
            self.count += 1
        self._order = order = self._order + 1
        partitions[partition] = Committed(offset, leader_epoch, "", when, NEVER, topic_id, order)
        return group

    def loaded(self) -> None:
        """Nothing is read from the log any more."""
        self._heads.clear()
        self._ids.clear()

    def _head(self, head: bytes) -> tuple[str, dict[int, Committed]] | None:
        """Of a key without its partition: the group, and where its offsets of a topic go."""
        between = 4 + int.from_bytes(head[2:4], "big")
        if len(head) != between + 2 + int.from_bytes(head[between : between + 2], "big"):
            return None
        try:
            group, topic = head[4:between].decode(), head[between + 2 :].decode()
        except UnicodeDecodeError:
            return None
        partitions = self.of.setdefault(group, {}).setdefault(topic, {})
        found = self._heads[head] = group, partitions
        return found

    def end_transaction(self, producer: Producer, *, is_committed: bool) -> None:
        for (group, topic, partition), committed in self.pending.pop(producer.id, {}).items():
            self._close(group, topic, partition, producer.id)
            if is_committed:
                before = self.get(group, topic, partition)
                if before is None or before.order < committed.order:
                    self._put(group, topic, partition, committed)

    def _put(self, group: str, topic: str, partition: int, committed: Committed) -> None:
        topics = self.of.get(group)
        if topics is None:
            topics = self.of[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        if partition not in partitions:
            self.count += 1
        partitions[partition] = committed

    def _remove(self, group: str, topic: str, partition: int) -> None:
        topics = self.of.get(group)
        partitions = None if topics is None else topics.get(topic)
        if topics is not None and partitions is not None and partition in partitions:
            del partitions[partition]
            self.count -= 1
            self._heads.clear()
            if not partitions:
                del topics[topic]
                if not topics:
                    del self.of[group]
        for producer in tuple(self._open.get(group, {}).get((topic, partition), ())):
            waiting = self.pending[producer]
            del waiting[group, topic, partition]
            if not waiting:
                del self.pending[producer]
            self._close(group, topic, partition, producer)

    def _close(self, group: str, topic: str, partition: int, producer: int) -> None:
        of_group = self._open[group]
        producers = of_group[topic, partition]
        producers.discard(producer)
        if not producers:
            del of_group[topic, partition]
            if not of_group:
                del self._open[group]


def commit_pair(key: bytes, committed: Committed) -> tuple[bytes, bytes]:
    """The record of an offset, as the log has it: what `commit_record` says, made by hand, since
    this is most of what a coordinator writes. `key` is that of `offset_key`."""
    metadata = committed.metadata
    topic_id = committed.topic_id
    if not metadata and committed.expires_at == NEVER and topic_id != ZERO:
        return key, _write_plain(
            _NEWEST,
            committed.offset,
            committed.leader_epoch,
            _NO_NOTE,
            committed.committed_at,
            _TOPIC_ID,
            topic_id,
        )
    if committed.expires_at != NEVER:
        note = metadata.encode()
        return key, b"".join(
            (
                _offset_with_expiry(_WITH_EXPIRY, committed.offset, len(note)),
                note,
                _times(committed.committed_at, committed.expires_at),
            )
        )
    note = b"\1"
    if metadata:
        out = Writer()
        out.compact_string(metadata)
        note = out.getvalue()
    return key, b"".join(
        (
            _offset(_NEWEST, committed.offset, committed.leader_epoch),
            note,
            _time(committed.committed_at),
            b"\0" if topic_id == ZERO else _TOPIC_ID + topic_id,
        )
    )


def offset_keys(group: str, topic: str) -> Callable[[int], bytes]:
    """What gives the key of a partition's offset, as the log has it."""
    one, two = group.encode(), topic.encode()
    head = b"".join((b"\0\1", _length(len(one)), one, _length(len(two)), two))
    return lambda partition: head + _number(partition)


def commit_record(group: str, topic: str, partition: int, committed: Committed) -> Change:
    """The record of an offset, as Kafka writes it."""
    has_expiry = committed.expires_at != NEVER
    return Change(
        OffsetCommitKey(group=group, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.committed_at,
            expire_timestamp=committed.expires_at,
            topic_id=ZERO if has_expiry else committed.topic_id,
        ),
        _WITH_EXPIRY if has_expiry else _NEWEST,
    )


def tombstone(group: str, topic: str, partition: int) -> Change:
    """The record that removes an offset."""
    return Change(OffsetCommitKey(group=group, topic=topic, partition=partition), None)


def tombstones(group: str, partitions: Iterable[tuple[str, int]]) -> list[Change]:
    return [tombstone(group, topic, partition) for topic, partition in partitions]

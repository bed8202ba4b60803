"""The snapshots of the log, and which of them, with which segments, may go. Kafka's rules.

A snapshot goes only when a newer one is there, oldest first: while log and snapshots together are
larger than the retention allows, or while the oldest one's state is older than it allows. The log
then starts at the next snapshot, and segments that end before that go as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from kraftline.errors import KraftlineError
from kraftline.raft.recovery import snapshot_path
from kraftline.raft.segment_log import LogView
from kraftline.raft.settings import LogSettings
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.storage.names import SnapshotId, SnapshotState, format_snapshot
from kraftline.storage.snapshot_file import SnapshotReader, SnapshotWriter


class Snapshots:
    """Ids in order. Files that are not there any more are forgotten when they are missed."""

    def __init__(self, directory: str, ids: Iterable[SnapshotId]) -> None:
        self.directory = directory
        self._ids: tuple[SnapshotId, ...] = tuple(sorted(ids))

    @property
    def ids(self) -> tuple[SnapshotId, ...]:
        return self._ids

    @property
    def newest(self) -> SnapshotId | None:
        return self._ids[-1] if self._ids else None

    def add(self, id: SnapshotId) -> None:
        self._ids = tuple(sorted({*self._ids, id}))

    def open(self, id: SnapshotId) -> SnapshotReader:
        return SnapshotReader(snapshot_path(self.directory, id))

    def write(
        self,
        id: SnapshotId,
        groups: Iterable[Sequence[bytes]],
        *,
        last_contained_log_timestamp: int,
        kraft_version: int,
        voters: VotersRecord | None,
        max_batch_bytes: int,
    ) -> str:
        """Write a snapshot file; `add` makes it known. The records of a group stay together."""
        with SnapshotWriter(
            self.directory,
            id,
            last_contained_log_timestamp=last_contained_log_timestamp,
            kraft_version=kraft_version,
            voters=voters,
            max_batch_bytes=max_batch_bytes,
        ) as writer:
            for group in groups:
                writer.append(group)
            writer.freeze()
        return writer.path

    def drop_before(self, id: SnapshotId) -> list[str]:
        """Rename older snapshots to `.deleted` and forget them; their new paths."""
        renamed = []
        for old in self._ids:
            if old < id:
                target = os.path.join(self.directory, format_snapshot(old, SnapshotState.DELETED))
                try:
                    os.rename(snapshot_path(self.directory, old), target)
                    renamed.append(target)
                except FileNotFoundError:
                    pass
        self._ids = tuple(each for each in self._ids if each >= id)
        return renamed

    def expired(self, view: LogView, settings: LogSettings, now: int) -> SnapshotId | None:
        """The snapshot with which the log should start by the settings; None: all may stay."""
        sizes = {id: self._size(id) for id in self._ids}
        total, log_size = sum(sizes.values()), view.size
        start = None
        for oldest, following in zip(self._ids, self._ids[1:], strict=False):
            too_large = (
                settings.retention_bytes >= 0 and log_size + total > settings.retention_bytes
            )
            too_old = settings.retention_ms >= 0 and now - self._time(oldest) > (
                settings.retention_ms
            )
            if not too_large and not too_old:
                break
            total -= sizes[oldest]
            start, log_size = following, _size_from(view, following.end_offset)
        return start

    def _size(self, id: SnapshotId) -> int:
        try:
            return os.path.getsize(snapshot_path(self.directory, id))
        except OSError:
            return 0

    def _time(self, id: SnapshotId) -> int:
        """How old the snapshot's state is; one that cannot be read counts as new, and stays."""
        try:
            with self.open(id) as reader:
                return reader.header.last_contained_log_timestamp
        except KraftlineError:
            return 2**63 - 1


def _size_from(view: LogView, offset: int) -> int:
    """The bytes of the segments that stay when the log starts at the offset."""
    segments = view.segments
    following = (*(segment.base_offset for segment in segments[1:]), view.end_offset + 1)
    return sum(s.size for s, end in zip(segments, following, strict=True) if end > offset)

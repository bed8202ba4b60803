"""Opening a metadata log after whatever happened to it: Kafka's rules, and nothing in silence.

Every batch is checked, since Kafka never trusts this log to have been closed well either. The log
ends before the first bad or half-written batch; what was there is cut off and reported. Indexes
and producer snapshots become what Kafka would have made of the batches.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from kraftline.errors import BadData
from kraftline.raft.control_state import ControlState
from kraftline.raft.problems import LogRefused
from kraftline.raft.walk import Walked, walk_segment
from kraftline.schema.uuids import Uuid
from kraftline.storage import partition_metadata
from kraftline.storage.checkpoints import LEADER_EPOCHS, read_leader_epochs
from kraftline.storage.cuts import Cut, whole_batches_after
from kraftline.storage.files import sync_directory, write_if_other
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.leader_epochs import LeaderEpochs
from kraftline.storage.names import (
    FileKind,
    SnapshotId,
    SnapshotState,
    Working,
    format_segment_file,
    format_snapshot,
)
from kraftline.storage.partition_dir import Segment, read_partition_directory
from kraftline.storage.partition_metadata import PartitionMetadata, write_partition_metadata
from kraftline.storage.producer_snapshot import format_producer_snapshot
from kraftline.storage.snapshot_file import SnapshotReader

TOPIC_ID = Uuid((1).to_bytes(16, "big"))
# No producer with an id ever writes to this log.
NO_PRODUCERS = format_producer_snapshot(())


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What was found and done when the log was opened."""

    segments: int
    batches: int
    size: int
    log_start_offset: int
    end_offset: int
    cuts: tuple[Cut, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What a person should know; nothing where all was well."""
        return [*map(str, self.cuts), *self.notes]


class Recovered(msgspec.Struct, frozen=True):
    """The log's state in memory; the last of `segments` is the one to append to."""

    report: Recovery
    segments: list[Walked]
    snapshots: list[SnapshotId]
    epochs: LeaderEpochs
    controls: ControlState
    producer_snapshots: list[int]


def recover(directory: str) -> Recovered:
    """Bring a partition's directory in order. LogRefused where that would lose what is good."""
    return _Recovery(directory).run()


class _Recovery:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.notes: list[str] = []
        self.cuts: list[Cut] = []
        self.controls = ControlState()
        self.before = read_partition_directory(directory)

    def run(self) -> Recovered:
        self._check_topic_id()
        self._drop_leftovers()
        found = LeaderEpochs()
        segments = self._walk(found)
        start = segments[0].base_offset if segments else 0
        end = segments[-1].end_offset if segments else 0
        epochs = self._read_epochs()
        epochs.cut_end(end)
        # What the file does not know, the batches do. Where the log starts at its own end (all
        # of it is in a snapshot), the file's only entry has just been cut.
        for entry in found.entries:
            if epochs.latest is None or entry.epoch > epochs.latest:
                epochs.assign(entry.epoch, entry.start_offset)
        snapshots = self._snapshots(start)
        newest = snapshots[-1] if snapshots else None
        last_epoch = epochs.latest or 0
        if newest is not None and (
            newest.epoch > last_epoch or (newest.epoch == last_epoch and newest.end_offset > end)
        ):
            # The state up to the snapshot is whole, the log before it is not: as in Kafka, the
            # log starts anew at the snapshot.
            self.notes.append(
                f"{self.directory}: the log ends at offset {end} (epoch {last_epoch}), before the "
                f"newest snapshot ({newest.end_offset}, epoch {newest.epoch}): it starts anew there"
            )
            self._remove_segments(segments)
            segments, start, end = [], newest.end_offset, newest.end_offset
            epochs = LeaderEpochs()
            for old in snapshots[:-1]:
                self._remove(self._snapshot_path(old), "a snapshot older than the log's start")
            snapshots = [newest]
        if snapshots:
            with SnapshotReader(self._snapshot_path(snapshots[-1])) as reader:
                self.controls.add_snapshot(reader)
        if not segments:
            path = os.path.join(self.directory, format_segment_file(start))
            segments = [Walked(start, path, start, IndexBuilder(start))]
        producers = self._producer_snapshots(segments, start, end)
        self._indexes(segments[:-1])
        epochs.write(self.directory)
        sync_directory(self.directory)
        report = Recovery(
            segments=len(segments),
            batches=sum(segment.batches for segment in segments),
            size=sum(segment.size for segment in segments),
            log_start_offset=start,
            end_offset=end,
            cuts=tuple(self.cuts),
            notes=tuple(self.notes),
        )
        return Recovered(report, segments, snapshots, epochs, self.controls, producers)

    def _check_topic_id(self) -> None:
        path = os.path.join(self.directory, partition_metadata.NAME)
        if not os.path.exists(path):
            write_partition_metadata(path, PartitionMetadata(TOPIC_ID))
        elif self.before.topic_id != TOPIC_ID:
            raise LogRefused(
                f"{path}: topic id {self.before.topic_id}, where the metadata log has {TOPIC_ID}"
            )

    def _drop_leftovers(self) -> None:
        """Files on their way out or in, and indexes whose segment is gone. As in Kafka."""
        for working in self.before.working_files:
            if working.name.working is Working.SWAP:
                raise LogRefused(f"{working.path}: a metadata log is never compacted; remove it")
            self._remove(working.path)
        for snapshot in self.before.snapshots:
            if snapshot.state is not SnapshotState.WHOLE:
                self._remove(snapshot.path)
        for oddity in self.before.oddities:
            if oddity.reason == "an index without its segment":
                self._remove(oddity.path, oddity.reason)

    def _read_epochs(self) -> LeaderEpochs:
        path = os.path.join(self.directory, LEADER_EPOCHS)
        if not os.path.exists(path):
            return LeaderEpochs()
        try:
            return LeaderEpochs(read_leader_epochs(path))
        except BadData as error:
            self.notes.append(f"{error}; made anew from the batches")
            return LeaderEpochs()

    def _walk(self, epochs: LeaderEpochs) -> list[Walked]:
        walked: list[Walked] = []
        listed = self.before.segments
        for n, segment in enumerate(listed):
            if walked and walked[-1].end_offset != segment.base_offset:
                raise LogRefused(
                    f"{segment.path}: begins at offset {segment.base_offset}, but the segment "
                    f"before it ends at {walked[-1].end_offset}. A segment is missing or not "
                    "whole; restore it, or remove what follows to go on without it"
                )
            found = walk_segment(segment.path, segment.base_offset, epochs, self.controls)
            walked.append(found)
            if found.trouble is not None:
                self._cut(found, listed[n + 1 :])
                break
        return walked

    def _cut(self, found: Walked, following: Iterable[Segment]) -> None:
        batches, last = whole_batches_after(found.path, found.size + 1)
        self.cuts.append(
            Cut(
                file=found.path,
                position=found.size,
                length=found.file_size - found.size,
                offset=found.end_offset,
                reason=found.trouble or "",
                batches=batches,
                last_offset=last,
            )
        )
        with open(found.path, "r+b") as file:
            file.truncate(found.size)
            os.fsync(file.fileno())
        for segment in following:
            batches, last = whole_batches_after(segment.path, 0)
            self.cuts.append(
                Cut(
                    file=segment.path,
                    position=0,
                    length=segment.size,
                    offset=found.end_offset,
                    reason="it follows what was cut off",
                    batches=batches,
                    last_offset=last,
                )
            )
            self._remove_files(segment.base_offset)

    def _snapshots(self, start: int) -> list[SnapshotId]:
        whole = sorted(s.id for s in self.before.snapshots if s.state is SnapshotState.WHOLE)
        kept = [id for id in whole if id.end_offset >= start]
        if start > 0 and not kept:
            raise LogRefused(
                f"{self.directory}: the log starts at offset {start}, but there is no snapshot of "
                "the state up to there; restore one, or what the log had before"
            )
        for id in whole:
            if id not in kept:
                self._remove(self._snapshot_path(id), "a snapshot older than the log's start")
        return kept

    def _producer_snapshots(self, segments: list[Walked], start: int, end: int) -> list[int]:
        bases = [segment.base_offset for segment in segments]
        there = [file.end_offset for file in self.before.producer_snapshots]
        strays = [offset for offset in there if offset not in bases and bases[-1] < offset <= end]
        wanted = {offset for offset in (*bases, *strays[-1:], end) if offset > start}
        for file in self.before.producer_snapshots:
            if file.end_offset not in wanted:
                self._remove(file.path)
        for offset in sorted(wanted):
            write_producer_snapshot(self.directory, offset)
        return sorted(wanted)

    def _indexes(self, closed: list[Walked]) -> None:
        """Those of the segment to append to are its appender's."""
        for segment in closed:
            segment.indexes.close()
            stem = os.path.splitext(segment.path)[0]
            write_if_other(stem + FileKind.OFFSET_INDEX.value, segment.indexes.offset_index())
            write_if_other(stem + FileKind.TIME_INDEX.value, segment.indexes.time_index())

    def _remove_segments(self, segments: list[Walked]) -> None:
        for segment in segments:
            self.cuts.append(
                Cut(
                    file=segment.path,
                    position=0,
                    length=segment.size,
                    offset=segment.base_offset,
                    reason="the newest snapshot is ahead of the log",
                    batches=segment.batches,
                    last_offset=segment.end_offset - 1,
                )
            )
            self._remove_files(segment.base_offset)

    def _remove_files(self, base_offset: int) -> None:
        for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX, FileKind.LOG):
            self._remove(os.path.join(self.directory, format_segment_file(base_offset, kind)))

    def _remove(self, path: str, why: str | None = None) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        if why is not None:
            self.notes.append(f"{path}: removed, {why}")

    def _snapshot_path(self, id: SnapshotId) -> str:
        return snapshot_path(self.directory, id)


def snapshot_path(directory: str, id: SnapshotId) -> str:
    return os.path.join(directory, format_snapshot(id))


def write_producer_snapshot(directory: str, offset: int) -> None:
    """That there are no producers, up to the offset."""
    name = format_segment_file(offset, FileKind.PRODUCER_SNAPSHOT)
    write_if_other(os.path.join(directory, name), NO_PRODUCERS)

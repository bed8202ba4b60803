"""What is in a partition's directory, told from its listing and the ends of its segments."""

from __future__ import annotations

import os

import msgspec

from kraftline.errors import BadData, KraftlineError
from kraftline.inspect.info.files import snapshot_time
from kraftline.inspect.info.segments import SegmentInfo, try_segment
from kraftline.storage import checkpoints
from kraftline.storage.names import PartitionState, SnapshotState, parse_segment_file
from kraftline.storage.partition_dir import (
    Oddity,
    PartitionDirectory,
    read_partition_directory,
)
from kraftline.storage.producer_snapshot import read_producer_snapshot

# Oddities that say something about a directory, but hide nothing of it.
_HARMLESS = ("an index without", "a second file", "not a partition", "not a plain", "a link that")
_STATES = {
    PartitionState.NORMAL: "normal",
    PartitionState.DELETED: "deleted",
    PartitionState.FUTURE: "future",
    PartitionState.STRAY: "stray",
}


class SnapshotInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A metadata snapshot: it holds everything below `end_offset`."""

    file: str
    end_offset: int
    epoch: int
    size: int
    state: str
    last_contained_log_timestamp: int | None = None


class ProducerStateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A producer snapshot; `producers` is None where it cannot be read."""

    file: str
    end_offset: int
    size: int
    producers: int | None = None


class EpochInfo(msgspec.Struct, frozen=True):
    epoch: int
    start_offset: int


class Offsets(msgspec.Struct, frozen=True, kw_only=True):
    """What the log directory's checkpoints say of a partition."""

    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    first_dirty_offset: int | None = None


class PartitionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's directory. `segments` are all of them, or only the first and last probed."""

    path: str
    topic: str | None
    partition: int | None
    state: str = "normal"
    topic_id: str | None = None
    size: int = 0
    segment_count: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    leader_epochs: tuple[EpochInfo, ...] = ()
    offsets: Offsets | None = None
    segments: tuple[SegmentInfo, ...] = ()
    producer_states: tuple[ProducerStateInfo, ...] = ()
    snapshots: tuple[SnapshotInfo, ...] = ()
    working_files: int = 0
    odd: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


def partition_info(path: str, *, brief: bool = False) -> PartitionInfo:
    """Describe a directory; `brief` probes only what a row about it needs."""
    directory = read_partition_directory(path)
    name = directory.name
    probed = _probe(directory, brief)
    odd, unreadable = sort_oddities(directory.oddities)
    odd += [f"{n}: not a file that Kafka keeps here" for n in directory.unknown]
    for segment in probed:
        if segment.damage is not None:
            unreadable.append(f"{os.path.basename(segment.file)}: {segment.damage}")
    first = next((s for s in probed if s.first_offset is not None), None)
    last = next((s for s in reversed(probed) if s.end_offset is not None), None)
    ends = directory.segments[-1].base_offset if directory.segments else None
    if last is not None and last.end_offset is not None and ends is not None:
        ends = max(last.end_offset, ends)
    times = [s.last_timestamp for s in probed if s.last_timestamp is not None]
    return PartitionInfo(
        path=path,
        topic=None if name is None else name.topic,
        partition=None if name is None else name.partition,
        state="normal" if name is None else _STATES[name.state],
        topic_id=None if directory.topic_id is None else str(directory.topic_id),
        size=directory.size,
        segment_count=len(directory.segments),
        first_offset=ends if first is None else first.first_offset,
        end_offset=ends,
        first_timestamp=None if first is None else first.first_timestamp,
        last_timestamp=max(times, default=None),
        leader_epochs=tuple(EpochInfo(e.epoch, e.start_offset) for e in directory.leader_epochs),
        offsets=None if brief else _offsets(path, directory),
        segments=() if brief else probed,
        producer_states=() if brief else _producers(directory),
        snapshots=tuple(
            SnapshotInfo(
                file=s.path,
                end_offset=s.id.end_offset,
                epoch=s.id.epoch,
                size=s.size,
                state=_SNAPSHOTS[s.state],
                last_contained_log_timestamp=snapshot_time(s.path),
            )
            for s in directory.snapshots
        ),
        working_files=len(directory.working_files),
        odd=tuple(odd),
        unreadable=tuple(unreadable),
    )


_SNAPSHOTS = {
    SnapshotState.WHOLE: "whole",
    SnapshotState.PARTIAL: "partial",
    SnapshotState.DELETED: "deleted",
}


def _probe(directory: PartitionDirectory, brief: bool) -> tuple[SegmentInfo, ...]:
    segments = directory.segments
    if not brief or len(segments) <= 2:
        return tuple(try_segment(segment) for segment in segments)
    full = [segment for segment in segments if segment.size] or list(segments)
    return tuple(
        try_segment(segment) for segment in {s.path: s for s in (full[0], full[-1])}.values()
    )


def _producers(directory: PartitionDirectory) -> tuple[ProducerStateInfo, ...]:
    found = []
    for file in directory.producer_snapshots:
        try:
            count = len(read_producer_snapshot(file.path))
        except KraftlineError:
            count = None
        found.append(
            ProducerStateInfo(
                file=file.path, end_offset=file.end_offset, size=file.size, producers=count
            )
        )
    return tuple(found)


def _offsets(path: str, directory: PartitionDirectory) -> Offsets | None:
    """What the checkpoints beside the directory say, where there are any."""
    if directory.name is None or directory.name.state is not PartitionState.NORMAL:
        return None
    parent = os.path.dirname(os.path.abspath(path))
    found: dict[str, int | None] = {}
    for field, file in (
        ("recovery_point", checkpoints.RECOVERY_POINTS),
        ("high_watermark", checkpoints.HIGH_WATERMARKS),
        ("log_start_offset", checkpoints.LOG_START_OFFSETS),
        ("first_dirty_offset", checkpoints.CLEANER_OFFSETS),
    ):
        try:
            entries = checkpoints.read_offset_checkpoint(os.path.join(parent, file))
        except KraftlineError:
            continue
        for entry in entries:
            if (entry.topic, entry.partition) == (directory.name.topic, directory.name.partition):
                found[field] = entry.offset
    return Offsets(**found) if found else None


def sort_oddities(oddities: tuple[Oddity, ...]) -> tuple[list[str], list[str]]:
    """(what is merely odd, what could not be read)."""
    odd: list[str] = []
    unreadable: list[str] = []
    for oddity in oddities:
        name = os.path.basename(oddity.path)
        harmless = oddity.reason.startswith(_HARMLESS)
        if oddity.reason.startswith("not a plain") and parse_segment_file(name):
            harmless = False
        (odd if harmless else unreadable).append(f"{name}: {oddity.reason}")
    return odd, unreadable


def read_reason(error: BadData | KraftlineError, path: str) -> str:
    """An error without the path that stands before it."""
    return str(error).removeprefix(f"{path}, ").removeprefix(f"{path}: ")

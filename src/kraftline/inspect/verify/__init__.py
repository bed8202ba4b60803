"""`verify`: check everything below some paths, and say what is wrong and what it means."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from kraftline.errors import BadData, NotKafka
from kraftline.inspect.verify import partitions
from kraftline.inspect.verify.copies import compare_copies
from kraftline.inspect.verify.findings import Enough, Finding, Report, Summary
from kraftline.inspect.verify.headers import LogState
from kraftline.inspect.verify.indexes import IndexPlace, open_offset_index, open_time_index
from kraftline.inspect.verify.log_dirs import verify_log_directory
from kraftline.inspect.verify.segments import Surroundings, verify_segment
from kraftline.inspect.verify.snapshots import verify_snapshot
from kraftline.inspect.verify.transactions import open_txn_index
from kraftline.storage import (
    checkpoints,
    clean_shutdown,
    meta_properties,
    partition_metadata,
    quorum_state,
)
from kraftline.storage.detect import PathKind, detect
from kraftline.storage.metadata_dirs import is_metadata_segment
from kraftline.storage.names import (
    METADATA_TOPIC,
    FileKind,
    Working,
    parse_partition,
    parse_segment_file,
    parse_snapshot,
)
from kraftline.storage.partition_dir import Companion, Segment, base_offsets

__all__ = ["Finding", "Summary", "total_bytes", "verify"]

_SMALL: dict[PathKind, tuple[str, Callable[[str], object]]] = {
    PathKind.OFFSET_CHECKPOINT: ("checkpoint-file", checkpoints.read_offset_checkpoint),
    PathKind.META_PROPERTIES: ("meta-properties", meta_properties.read_meta_properties),
    PathKind.PARTITION_METADATA: (
        "partition-metadata",
        partition_metadata.read_partition_metadata,
    ),
    PathKind.QUORUM_STATE: ("quorum-state", quorum_state.read_quorum_state),
    PathKind.CLEAN_SHUTDOWN: ("clean-shutdown", clean_shutdown.read_clean_shutdown),
}
_INDEXES = {
    PathKind.OFFSET_INDEX: FileKind.OFFSET_INDEX,
    PathKind.TIME_INDEX: FileKind.TIME_INDEX,
    PathKind.TXN_INDEX: FileKind.TXN_INDEX,
}
_OPEN: dict[FileKind, Callable[[IndexPlace, Report], object]] = {
    FileKind.OFFSET_INDEX: open_offset_index,
    FileKind.TIME_INDEX: open_time_index,
    FileKind.TXN_INDEX: open_txn_index,
}


def verify(
    paths: Iterable[str],
    emit: Callable[[Finding], None],
    *,
    progress: Callable[[int], None] | None = None,
    first: bool = False,
    most: int | None = None,
) -> Summary:
    """Check everything below the paths; findings and notes go to `emit` as they come.

    `most` bounds how many of one kind in one file are passed on; all are counted.
    With `first` only records are looked at, and the walk ends at the first that cannot be read.
    NotKafka is raised for a path that is nothing of Kafka's, before anything is checked.
    """
    started = time.monotonic()
    report = Report(emit, progress=progress, first=first, most=most)
    kinds = [(path, detect(path)) for path in paths]
    try:
        for path, kind in kinds:
            _verify(path, kind, report)
        if not first:
            compare_copies(kinds, report)
    except Enough:
        pass
    return report.summary(time.monotonic() - started)


def _verify(path: str, kind: PathKind, report: Report) -> None:
    if kind is PathKind.LOG_DIRECTORY:
        verify_log_directory(path, report)
    elif kind is PathKind.PARTITION_DIRECTORY:
        partitions.verify_partition(path, report)
    elif kind in (PathKind.SNAPSHOT, PathKind.BOOTSTRAP):
        verify_snapshot(path, report)
    elif kind is PathKind.SEGMENT:
        _segment(path, report)
    elif kind in _INDEXES:
        _index(path, _INDEXES[kind], report)
    elif kind is PathKind.PRODUCER_SNAPSHOT:
        name = parse_segment_file(os.path.basename(path))
        end_offset = None if name is None else name.offset
        partitions.verify_producer_snapshot(path, end_offset, report)
    elif kind is PathKind.LEADER_EPOCHS:
        try:
            epochs = checkpoints.read_leader_epochs(path)
        except (BadData, NotKafka) as error:
            partitions.refuse(error, "leader-epochs", path, report)
        else:
            report.read_file(0)
            partitions.verify_epoch_order(epochs, path, report)
    else:
        code, read = _SMALL[kind]
        try:
            read(path)
        except (BadData, NotKafka) as error:
            partitions.refuse(error, code, path, report)
        else:
            report.read_file(0)


def _segment(path: str, report: Report, only: FileKind | None = None) -> None:
    """A single segment, with the indexes beside it, in what its directory says about it."""
    folder = os.path.dirname(os.path.abspath(path))
    name = parse_segment_file(os.path.basename(path))
    partition = parse_partition(os.path.basename(folder))
    offset, companions, newest = 0, [], True
    if name is not None and name.kind is FileKind.LOG:
        offset = name.offset
        newest = offset >= _newest(folder)
        stem = os.path.splitext(path)[0]
        for kind in _INDEXES.values():
            beside = stem + kind.value
            if name.working is Working.NONE and _is_file(beside):
                companions.append(Companion(kind, beside, os.path.getsize(beside)))
    topic = None if partition is None else partition.topic
    if is_metadata_segment(path):
        topic = METADATA_TOPIC
    clean = partitions.stopped_cleanly(os.path.dirname(folder))
    clean = clean and partitions.closed_at_stop(partition) and topic != METADATA_TOPIC
    segment = Segment(offset, path, 0, tuple(companions))
    around = Surroundings(topic, clean)
    verify_segment(segment, around, LogState(), report, newest=newest, only=only)


def _index(path: str, kind: FileKind, report: Report) -> None:
    """An index means something only beside its log; alone, sizes and order can still be wrong."""
    log = os.path.splitext(path)[0] + FileKind.LOG.value
    if _is_file(log):
        _segment(log, report, kind)
        return
    if not report.first:
        _OPEN[kind](IndexPlace(path), report)
    report.note("index-size", path, "its segment is not beside it: nothing to compare it with")


def _newest(folder: str) -> int:
    try:
        return max(base_offsets(folder), default=0)
    except NotKafka:
        return 0


def _is_file(path: str) -> bool:
    return os.path.isfile(path)


def total_bytes(paths: Iterable[str]) -> int:
    """About how much a walk of the paths will read, for a progress bar. Metadata is read a second
    time for the audit, and once more for each copy that it is compared with."""
    total = 0
    metadata: list[int] = []
    for path in paths:
        if os.path.isfile(path):
            total += _size(path)
        for folder, _, names in os.walk(path):
            size = sum(
                _size(os.path.join(folder, name))
                for name in names
                if name.endswith((".log", ".checkpoint"))
            )
            total += size
            if quorum_state.NAME in names or any(map(parse_snapshot, names)):
                metadata.append(size)
    return total + sum(metadata) * len(metadata)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0

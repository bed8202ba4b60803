"""Several nodes' copies of one metadata log: the same batches at the same offsets, and the same
records in snapshots of the same name."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from kraftline.errors import KraftlineError, NotKafka
from kraftline.inspect.history.batches import Batch
from kraftline.inspect.history.files import cluster_around
from kraftline.inspect.verify.findings import Report
from kraftline.inspect.verify.quorum import quorum_difference, snapshot_quorum
from kraftline.inspect.verify.replay import CODE as REPLAY
from kraftline.inspect.verify.replay import audit_elsewhere, listed
from kraftline.inspect.verify.replay_difference import differences
from kraftline.inspect.verify.replay_reading import read_headers, snapshot_image
from kraftline.storage.detect import PathKind
from kraftline.storage.files import unreadable
from kraftline.storage.log_dir import read_log_directory
from kraftline.storage.metadata_dirs import holds_metadata, whole_snapshots
from kraftline.storage.names import SnapshotId
from kraftline.storage.partition_dir import SnapshotFile, read_partition_directory

LOGS = "log-divergence"
SNAPSHOTS = "snapshot-divergence"


class _Copy(msgspec.Struct, frozen=True):
    path: str
    cluster_id: str | None
    segments: tuple[str, ...]
    files: tuple[SnapshotFile, ...]
    # Where its log begins.
    start: int | None

    @property
    def committed(self) -> int:
        """What is below was committed as far as this node knew: only that is in snapshots."""
        return max((id.end_offset for id in self.snapshots), default=0)

    @property
    def snapshots(self) -> dict[SnapshotId, str]:
        return {each.id: each.path for each in self.files}


def compare_copies(paths: Sequence[tuple[str, PathKind]], report: Report) -> None:
    """Compare the metadata directories among the paths, those of each cluster with each other. One
    that does not say whose it is goes with the others if these are all of one cluster."""
    copies = list(_copies(paths))
    known = {copy.cluster_id for copy in copies} - {None}
    only = known.pop() if len(known) == 1 else None
    clusters: dict[str | None, list[_Copy]] = {}
    for copy in copies:
        clusters.setdefault(copy.cluster_id or only, []).append(copy)
    for copies in clusters.values():
        related: list[tuple[_Copy, _Copy]] = []
        for one, other in combinations(copies, 2):
            try:
                if _logs(one, other, report):
                    related.append((one, other))
            except NotKafka:
                report.note(LOGS, other.path, f"changed while it was compared with {one.path}")
        _beyond(copies, related, report)
        for one, other in related:
            _snapshots(one, other, report)


def _beyond(
    copies: Sequence[_Copy], related: Sequence[tuple[_Copy, _Copy]], report: Report
) -> None:
    """Snapshots of a node whose log begins later than another's: by itself, the oldest of them had
    to be believed, and all that follows from it."""
    longest = min(
        (each for each in copies if each.start is not None),
        key=lambda each: each.start or 0,
        default=None,
    )
    if longest is None:
        return
    for copy in copies:
        pair = (longest, copy) if (longest, copy) in related else (copy, longest)
        later = copy.start is None or copy.start > (longest.start or 0)
        if later and pair in related:
            untold = [each for each in copy.files if not report.has_told(each.path, REPLAY)]
            audit_elsewhere(longest.segments, untold, copy.path, report)


def _copies(paths: Sequence[tuple[str, PathKind]]) -> Iterator[_Copy]:
    seen: set[str] = set()
    for path, kind in paths:
        if kind is PathKind.LOG_DIRECTORY:
            log_directory = read_log_directory(path)
            place = log_directory.metadata_log()
            if place is None:
                continue
            path = place.path
        elif kind is not PathKind.PARTITION_DIRECTORY:
            continue
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        try:
            directory = read_partition_directory(path)
            if not holds_metadata(directory):
                continue
        except KraftlineError:
            continue  # told of where it was checked by itself
        yield _Copy(
            path,
            cluster_around(path),
            tuple(segment.path for segment in directory.segments),
            tuple(whole_snapshots(directory)),
            directory.segments[0].base_offset if directory.segments else None,
        )


class _Stretch(msgspec.Struct):
    """Neighbouring offsets at which two logs differ, from their first two batches on."""

    one: Batch
    other: Batch
    next_offset: int
    to_the_end: bool = False


def _logs(one: _Copy, other: _Copy, report: Report) -> bool:
    """Whether they are copies of one log at all."""
    shared, stretches = _compare(
        read_headers(one.segments, report.read_again),
        read_headers(other.segments, report.read_again),
    )
    if not shared and stretches:
        text = f"not one batch is the same as in {one.path}, though offsets are"
        if None in (one.cluster_id, other.cluster_id):
            report.note(LOGS, other.path, f"{text}: they seem to be of different clusters")
        else:
            report.add(
                LOGS,
                other.path,
                f"{text}; likely each was formatted as a cluster of its own, with the same id",
                offset=stretches[0].other.base_offset,
            )
        return False
    for stretch in stretches:
        _tell(one, other, stretch, report)
    return True


def _compare(one: Iterator[Batch], other: Iterator[Batch]) -> tuple[int, list[_Stretch]]:
    """How many batches are the same, and where they are not."""
    shared, stretches = 0, []
    open_stretch: _Stretch | None = None
    mine, theirs = next(one, None), next(other, None)
    while mine is not None and theirs is not None:
        if mine.last_offset < theirs.base_offset:
            mine = next(one, None)
            continue
        if theirs.last_offset < mine.base_offset:
            theirs = next(other, None)
            continue
        if _same(mine, theirs):
            shared += 1
            open_stretch = None
        elif open_stretch is None:
            open_stretch = _Stretch(mine, theirs, 0)
            stretches.append(open_stretch)
        end = min(mine.last_offset, theirs.last_offset)
        if open_stretch is not None:
            open_stretch.next_offset = end + 1
        ours_ended, theirs_ended = mine.last_offset == end, theirs.last_offset == end
        if ours_ended:
            mine = next(one, None)
        if theirs_ended:
            theirs = next(other, None)
    if open_stretch is not None:
        open_stretch.to_the_end = True
    return shared, stretches


def _same(one: Batch, other: Batch) -> bool:
    """The checksum covers the rest, and they may lie elsewhere in their files."""
    return (one.base_offset, one.epoch, one.size, one.crc) == (
        other.base_offset,
        other.epoch,
        other.size,
        other.crc,
    )


def _tell(one: _Copy, other: _Copy, stretch: _Stretch, report: Report) -> None:
    mine, theirs = stretch.one, stretch.other
    offset = max(mine.base_offset, theirs.base_offset)
    text = (
        f"offsets {offset} to {stretch.next_offset - 1} differ from {one.path}: the batch at "
        f"{theirs.base_offset} is of leader epoch {theirs.epoch} ({theirs.size:,} bytes), there "
        f"{mine.epoch} ({mine.size:,} bytes)"
    )
    behind = other if theirs.epoch < mine.epoch else one
    if mine.epoch != theirs.epoch and stretch.to_the_end and offset >= behind.committed:
        # What Raft allows: an old leader wrote what nobody else got before it went down.
        report.note(
            LOGS, other.path, f"{text}; {behind.path} cuts these off when it next follows a leader"
        )
        return
    if mine.epoch == theirs.epoch:
        cause = "one leader never writes two batches at one offset: a file was changed or damaged"
    elif not stretch.to_the_end:
        cause = "the logs agree again behind it: a file was changed, or put together from two"
    else:
        cause = (
            f"{behind.path} has snapshots of it, so it counted as committed there: the quorum was "
            "split, or lost its log on most nodes"
        )
    report.add(
        LOGS, theirs.file, f"{text}; likely {cause}", position=theirs.position, offset=offset
    )


def _snapshots(one: _Copy, other: _Copy, report: Report) -> None:
    for id in sorted(one.snapshots.keys() & other.snapshots.keys()):
        try:
            _snapshot(id, one.snapshots[id], other.snapshots[id], report)
        except KraftlineError:
            continue  # not whole, or gone: told of where it was checked by itself


def _snapshot(id: SnapshotId, one: str, other: str, report: Report) -> None:
    try:
        if filecmp.cmp(one, other, shallow=False):
            return
    except OSError as error:
        raise unreadable(other, error) from error
    quorum = quorum_difference(snapshot_quorum(one), snapshot_quorum(other))
    if quorum:
        report.add(
            SNAPSHOTS,
            other,
            f"its quorum is not that of {one}: {quorum}; the cause is unknown",
            offset=id.end_offset,
        )
    mine, theirs = snapshot_image(one), snapshot_image(other)
    found = differences(mine, theirs)
    if found:
        report.add(
            SNAPSHOTS,
            other,
            f"it is not the same as {one}: {listed(found, mine, theirs, second='this one')}; "
            "likely one of them does not equal the log either, which says more",
            offset=id.end_offset,
        )

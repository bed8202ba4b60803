"""A log directory: its small files, its partitions, and its checkpoints against their logs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kraftline.inspect.verify.findings import Report
from kraftline.inspect.verify.partitions import (
    Extent,
    TopicIds,
    stopped_cleanly,
    verify_partition,
)
from kraftline.inspect.verify.snapshots import verify_snapshot
from kraftline.storage import checkpoints, clean_shutdown, meta_properties
from kraftline.storage.checkpoints import PartitionOffset
from kraftline.storage.log_dir import LogDirectory, PartitionPlace, read_log_directory
from kraftline.storage.names import METADATA_TOPIC, PartitionState
from kraftline.storage.partition_dir import Oddity

_CODES = {
    meta_properties.NAME: "meta-properties",
    clean_shutdown.NAME: "clean-shutdown",
    **dict.fromkeys(checkpoints.OFFSET_CHECKPOINTS, "checkpoint-file"),
}
_NAMED = 5


def verify_log_directory(path: str, report: Report) -> None:
    """Check all of it. Checkpoints are read first: a live log only grows beyond them."""
    directory = read_log_directory(path)
    clean = stopped_cleanly(path)
    for oddity in directory.oddities:
        _oddity(oddity, report)
    if directory.bootstrap is not None:
        verify_snapshot(directory.bootstrap, report)
    logs: dict[tuple[str, int], Extent | None] = {}
    starts = {(e.topic, e.partition): e.offset for e in directory.log_start_offsets}
    topic_ids = TopicIds()
    for place in _metadata_first(directory):
        log_start = starts.get((place.name.topic, place.name.partition), 0)
        extent = verify_partition(
            place.path, report, clean=clean, log_start=log_start, topic_ids=topic_ids
        )
        if place.name.state is PartitionState.NORMAL:
            logs[place.name.topic, place.name.partition] = extent
    if report.first:
        return
    if directory.meta is not None:
        report.read_file(0)
    elif not os.path.exists(os.path.join(path, meta_properties.NAME)):
        report.note(
            "meta-properties", path, "there is no meta.properties: not the whole directory?"
        )
    _checkpoints(directory, logs, report)


def _metadata_first(directory: LogDirectory) -> list[PartitionPlace]:
    """A node reads the metadata log before any other."""
    return sorted(directory.partitions, key=lambda place: place.name.topic != METADATA_TOPIC)


def _checkpoints(
    directory: LogDirectory, logs: dict[tuple[str, int], Extent | None], report: Report
) -> None:
    for name, entries in (
        (checkpoints.RECOVERY_POINTS, directory.recovery_points),
        (checkpoints.HIGH_WATERMARKS, directory.high_watermarks),
        (checkpoints.LOG_START_OFFSETS, directory.log_start_offsets),
        (checkpoints.CLEANER_OFFSETS, directory.cleaner_offsets),
    ):
        file = os.path.join(directory.path, name)
        if entries:
            report.read_file(0)
        _gone(file, [e for e in entries if (e.topic, e.partition) not in logs], report)
        for n, entry in enumerate(entries):
            extent = logs.get((entry.topic, entry.partition))
            if extent is not None:
                _checkpoint(file, name, n, entry, extent, report)


def _checkpoint(
    file: str, name: str, n: int, entry: PartitionOffset, extent: Extent, report: Report
) -> None:
    code, what = _CHECKPOINTS[name]
    problem = None
    if entry.offset < 0:
        problem = f"{what} {entry.offset} is negative"
    elif entry.offset > extent.end:
        problem = f"{what} {entry.offset}, but the log ends at {extent.end}"
    if problem is not None:
        report.add(
            code,
            file,
            f"line {n + 3}: {entry.topic}-{entry.partition}: {problem}",
            offset=entry.offset,
            # The cleaner begins at the log's start again, and says so in its log.
            note=name == checkpoints.CLEANER_OFFSETS,
        )


_CHECKPOINTS = {
    checkpoints.RECOVERY_POINTS: ("recovery-point", "recovery point"),
    checkpoints.HIGH_WATERMARKS: ("high-watermark", "high watermark"),
    checkpoints.LOG_START_OFFSETS: ("log-start-offset", "log start offset"),
    checkpoints.CLEANER_OFFSETS: ("checkpoint-file", "first dirty offset"),
}


def _gone(file: str, entries: Sequence[PartitionOffset], report: Report) -> None:
    if not entries:
        return
    names = [f"{entry.topic}-{entry.partition}" for entry in entries[:_NAMED]]
    more = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
    report.note(
        "checkpoint-file",
        file,
        f"names {', '.join(names)}{more}, with no directory here (deleted or moved)",
    )


def _oddity(oddity: Oddity, report: Report) -> None:
    name = os.path.basename(oddity.path)
    if name in _CODES:
        report.add(_CODES[name], oddity.path, oddity.reason)
    elif "not a partition's name" in oddity.reason:
        report.add("directory-name", oddity.path, "its name is not that of a partition")
    else:
        report.add("unreadable", oddity.path, oddity.reason)

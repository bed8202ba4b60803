"""The partitions behind a reader's paths: which segments to read, and the files beside them."""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from kraftline.errors import NotKafka
from kraftline.spark.inputs import InputFile, InputKind, find_inputs, is_local, opened
from kraftline.storage.checkpoints import LOG_START_OFFSETS, read_offset_checkpoint
from kraftline.storage.files import unreadable
from kraftline.storage.names import (
    METADATA_TOPIC,
    FileKind,
    SegmentFileName,
    Working,
    parse_segment_file,
)

_COPY: Final = 8 * 1024 * 1024


class PartitionLog(Struct, frozen=True):
    """One partition's directory and those of its segments that are to be read, by base offset.

    `topic` and `partition` are None where the directory's name is none of Kafka's.
    """

    directory: str
    topic: str | None
    partition: int | None
    segments: tuple[InputFile, ...]

    def end_of(self, segment: InputFile) -> int | None:
        """The base offset of the segment after this one; None after the last."""
        later = (other.offset for other in self.segments if other.offset > segment.offset)
        return min(later, default=None)


def find_logs(paths: Sequence[str], topics: Sequence[str] = ()) -> list[PartitionLog]:
    """Partitions of the topics (`*` matches); without any, all but the metadata log, which comes
    only where it is asked for by name or by its own path."""
    found: dict[str, list[InputFile]] = {}
    for path in paths:
        files = [file for file in find_inputs([path]) if file.kind is InputKind.SEGMENT]
        several = len({file.directory for file in files}) > 1
        for file in files:
            if _wanted(file, topics, several):
                found.setdefault(file.directory, []).append(file)
    if not found:
        what = f"of {', '.join(topics)} " if topics else ""
        raise NotKafka(f"{', '.join(paths)}: no segment {what}is there")
    return [_log(directory, files) for directory, files in sorted(found.items())]


def _wanted(file: InputFile, topics: Sequence[str], several: bool) -> bool:
    if topics:
        return file.topic is not None and any(fnmatchcase(file.topic, each) for each in topics)
    return not (several and file.topic == METADATA_TOPIC)


def _log(directory: str, files: Sequence[InputFile]) -> PartitionLog:
    by_offset = {file.offset: file for file in files}
    segments = tuple(by_offset[offset] for offset in sorted(by_offset))
    topic = segments[0].topic
    return PartitionLog(
        directory, topic, None if topic is None else segments[0].partition, segments
    )


def whole_log(log: PartitionLog) -> PartitionLog:
    """All segments of the directory, where a reader may have named only some of them."""
    bases = {name.offset for name in companions(log.directory) if name.kind is FileKind.LOG}
    if bases == {segment.offset for segment in log.segments}:
        return log
    files = [file for file in find_inputs([log.directory]) if file.kind is InputKind.SEGMENT]
    return _log(log.directory, files)


def companions(directory: str) -> dict[SegmentFileName, str]:
    """The files of segments in a directory that are in use, by name: logs, indexes, snapshots."""
    import fsspec

    system, root = fsspec.core.url_to_fs(directory)
    try:
        names = [posixpath.basename(path) for path in system.ls(root, detail=False)]
    except OSError as error:
        raise unreadable(directory, error) from error
    found = {}
    for name in sorted(names):
        parsed = parse_segment_file(name)
        if parsed is not None and parsed.working is Working.NONE:
            found[parsed] = beside(directory, name)
    return found


def beside(directory: str, name: str) -> str:
    """A file's path or URL by the directory it is in (`zip://a-0::file:///x.zip` has a tail)."""
    head, colons, tail = directory.partition("::")
    return f"{head.rstrip('/')}/{name}{colons}{tail}"


def above(path: str) -> str:
    """The directory that holds a file or a directory, by path or URL."""
    head, colons, tail = path.rstrip("/").partition("::")
    scheme, slashes, rest = head.rpartition("://")
    return f"{scheme}{slashes}{posixpath.dirname(rest)}{colons}{tail}"


def content(path: str) -> bytes:
    """A small file, wherever it is."""
    with opened(path) as file:
        return file.read()


def log_start_offset(log: PartitionLog) -> int:
    """Where consumers begin: records before it were deleted, though a segment may still hold
    them. 0 where no checkpoint of the log directory says so."""
    try:
        entries = read_offset_checkpoint(content(beside(above(log.directory), LOG_START_OFFSETS)))
    except NotKafka:
        return 0
    for entry in entries:
        if (entry.topic, entry.partition) == (log.topic, log.partition):
            return entry.offset
    return 0


@contextmanager
def on_disk(path: str, start: int = 0, end: int | None = None) -> Iterator[str]:
    """A local file that has the same bytes in the same places from `start` to `end`.

    What is elsewhere is copied in one stretch, which suits object stores, to a file that is
    empty before `start`; so one reader with its care for damage serves all storage.
    """
    if is_local(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kraftline-") as scratch, opened(path) as source:
        copy = os.path.join(scratch, posixpath.basename(path.partition("::")[0]))
        source.seek(start)
        with open(copy, "wb") as target:
            target.seek(start)
            left = None if end is None else end - start
            while left is None or left > 0:
                data = source.read(_COPY if left is None else min(_COPY, left))
                if not data:
                    break
                target.write(data)
                left = None if left is None else left - len(data)
        yield copy

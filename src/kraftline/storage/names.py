"""Names in a log directory: partition directories, segment files, snapshots; parsed and made.

A topic name may hold dots and dashes, so a partition directory is split at its last dash, and
the mark of a directory on its way out (`.<id>-delete`) is taken off first.
"""

from __future__ import annotations

import enum
import os
import re

import msgspec

MAX_NAME = 255
MAX_OFFSET = 2**63 - 1
MAX_INT = 2**31 - 1

LOG_SUFFIX = ".log"
SNAPSHOT_SUFFIX = ".checkpoint"
BOOTSTRAP = "bootstrap.checkpoint"
METADATA_TOPIC = "__cluster_metadata"


class PartitionState(enum.Enum):
    """What a partition directory's name says about it."""

    NORMAL = ""
    DELETED = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class PartitionName(msgspec.Struct, frozen=True, order=True):
    """`topic-0`, or `topic-0.<unique id>-delete` (`-future`, `-stray`).

    The topic of a directory to be deleted may be cut short: its name keeps to 255 characters.
    """

    topic: str
    partition: int
    state: PartitionState = PartitionState.NORMAL
    unique_id: str | None = None


class FileKind(enum.Enum):
    """The files that belong to one segment."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TXN_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"


class Working(enum.Enum):
    """The suffix of a file that is being made, swapped in or thrown away."""

    NONE = ""
    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"
    TMP = ".tmp"


class SegmentFileName(msgspec.Struct, frozen=True):
    """`00000000000000000042.log` and its companions.

    The number is the segment's base offset; of a producer snapshot, the end offset it covers.
    """

    offset: int
    kind: FileKind
    working: Working = Working.NONE


class SnapshotState(enum.Enum):
    WHOLE = ".checkpoint"
    PARTIAL = ".checkpoint.part"
    DELETED = ".checkpoint.deleted"


class SnapshotId(msgspec.Struct, frozen=True, order=True):
    """The end offset (exclusive) of a snapshot and the epoch of its last record."""

    end_offset: int
    epoch: int


class SnapshotName(msgspec.Struct, frozen=True):
    id: SnapshotId
    state: SnapshotState = SnapshotState.WHOLE


_MARKED = re.compile(r"(\S+-\S+)\.([^\s.]+)(-delete|-future|-stray)")
# Up to 0.8 some tools wrote names that are not padded, so any count of digits is read.
_SEGMENT = re.compile(
    r"([0-9]{1,20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)"
    r"(\.deleted|\.cleaned|\.swap|\.tmp)?",
)
_SNAPSHOT = re.compile(
    r"([0-9]{20})-([0-9]{10})(?:(\.checkpoint)|(?:-[^.]*)?(\.checkpoint\.part)"
    r"|(\.checkpoint\.deleted))"
)


def parse_partition(name: str) -> PartitionName | None:
    """None where Kafka would not take the name for a partition's directory."""
    state, unique_id = PartitionState.NORMAL, None
    marked = _MARKED.fullmatch(name)
    if marked is not None:
        name, unique_id = marked[1], marked[2]
        state = PartitionState(marked[3])
    elif name.endswith(("-delete", "-future", "-stray")):
        return None
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or not (digits.isascii() and digits.isdigit()):
        return None
    partition = int(digits) if len(digits) <= 10 else MAX_INT + 1
    if partition > MAX_INT:
        return None
    return PartitionName(topic, partition, state, unique_id)


def format_partition(name: PartitionName) -> str:
    """The directory's name; a new unique id is drawn where the state needs one and none is set."""
    if name.state is PartitionState.NORMAL:
        return f"{name.topic}-{name.partition}"
    unique_id = name.unique_id or os.urandom(16).hex()
    end = f"-{name.partition}.{unique_id}{name.state.value}"
    # Kafka cuts the topic only for directories that go away: a future one must keep its name.
    if name.state is PartitionState.FUTURE:
        return name.topic + end
    return name.topic[: MAX_NAME - len(end)] + end


def parse_segment_file(name: str) -> SegmentFileName | None:
    found = _SEGMENT.fullmatch(name)
    if found is None or int(found[1]) > MAX_OFFSET:
        return None
    return SegmentFileName(int(found[1]), FileKind(found[2]), Working(found[3] or ""))


def format_segment_file(
    offset: int, kind: FileKind = FileKind.LOG, working: Working = Working.NONE
) -> str:
    return f"{offset:020d}{kind.value}{working.value}"


def parse_snapshot(name: str) -> SnapshotName | None:
    found = _SNAPSHOT.fullmatch(name)
    if found is None or int(found[1]) > MAX_OFFSET or int(found[2]) > MAX_INT:
        return None
    state = SnapshotState(found[3] or found[4] or found[5])
    return SnapshotName(SnapshotId(int(found[1]), int(found[2])), state)


def format_snapshot(id: SnapshotId, state: SnapshotState = SnapshotState.WHOLE) -> str:
    return f"{id.end_offset:020d}-{id.epoch:010d}{state.value}"


def base_offset_of(path: str | os.PathLike[str]) -> int | None:
    """The number in a segment file's name, whatever directory it is in."""
    name = parse_segment_file(os.path.basename(os.fspath(path)))
    return None if name is None else name.offset

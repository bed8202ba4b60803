"""What is in a partition's directory: segments with their companions, snapshots, epochs.

Built by listing, on a directory that a broker may be writing: a file that vanishes between two
looks is not there, and what is odd is noted, not raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import msgspec

from kraftline.errors import BadData, NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage import checkpoints, partition_metadata, quorum_state
from kraftline.storage.checkpoints import EpochStart
from kraftline.storage.files import Path, unreadable, vanished
from kraftline.storage.names import (
    FileKind,
    PartitionName,
    SegmentFileName,
    SnapshotId,
    SnapshotName,
    SnapshotState,
    Working,
    parse_partition,
    parse_segment_file,
    parse_snapshot,
)
from kraftline.storage.quorum_state import QuorumState

_T = TypeVar("_T")
# Written aside before they take their place; one may be left after a crash.
_ASIDE = tuple(
    name + ".tmp"
    for name in (checkpoints.LEADER_EPOCHS, partition_metadata.NAME, quorum_state.NAME)
)


class Oddity(msgspec.Struct, frozen=True):
    """Something that does not belong, or cannot be read, and why."""

    path: str
    reason: str


class Companion(msgspec.Struct, frozen=True):
    """A file beside a segment: an index of it."""

    kind: FileKind
    path: str
    size: int


class Segment(msgspec.Struct, frozen=True):
    """A `.log` file with what goes with it. `companions` are indexes of the same base offset."""

    base_offset: int
    path: str
    size: int
    companions: tuple[Companion, ...] = ()


class ProducerSnapshotFile(msgspec.Struct, frozen=True):
    """Producer state up to an end offset."""

    end_offset: int
    path: str
    size: int


class SnapshotFile(msgspec.Struct, frozen=True):
    """A metadata snapshot; partial while it is written or fetched, deleted on its way out."""

    id: SnapshotId
    state: SnapshotState
    path: str
    size: int


class WorkingFile(msgspec.Struct, frozen=True):
    """A segment file that is being cleaned, swapped in or deleted."""

    name: SegmentFileName
    path: str
    size: int


class PartitionDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is None where the directory's name is none of Kafka's (a copied directory)."""

    path: str
    name: PartitionName | None
    topic_id: Uuid | None = None
    segments: tuple[Segment, ...] = ()
    producer_snapshots: tuple[ProducerSnapshotFile, ...] = ()
    snapshots: tuple[SnapshotFile, ...] = ()
    working_files: tuple[WorkingFile, ...] = ()
    leader_epochs: tuple[EpochStart, ...] = ()
    quorum_state: QuorumState | None = None
    unknown: tuple[str, ...] = ()
    oddities: tuple[Oddity, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of the segments."""
        return sum(segment.size for segment in self.segments)


def read_partition_directory(path: Path) -> PartitionDirectory:
    """List a directory and read its small files. NotKafka if it cannot be listed at all."""
    folder = os.fspath(path)
    oddities: list[Oddity] = []
    sizes = list_files(folder, oddities)
    segments: dict[int, Segment] = {}
    indexes: dict[int, list[Companion]] = {}
    producers, snapshots, working, unknown = [], [], [], []
    for name, size in sorted(sizes.items()):
        where = os.path.join(folder, name)
        match parse_segment_file(name) or parse_snapshot(name):
            case SegmentFileName(working=Working.NONE) as parsed:
                if parsed.kind is FileKind.LOG:
                    if parsed.offset in segments:
                        oddities.append(Oddity(where, "a second file with the same base offset"))
                    segments[parsed.offset] = Segment(parsed.offset, where, size)
                elif parsed.kind is FileKind.PRODUCER_SNAPSHOT:
                    producers.append(ProducerSnapshotFile(parsed.offset, where, size))
                else:
                    indexes.setdefault(parsed.offset, []).append(
                        Companion(parsed.kind, where, size)
                    )
            case SegmentFileName() as parsed:
                working.append(WorkingFile(parsed, where, size))
            case SnapshotName() as snapshot:
                snapshots.append(SnapshotFile(snapshot.id, snapshot.state, where, size))
            case _ if name in _SMALL_FILES or name in _ASIDE:
                pass
            case _:
                unknown.append(name)
    for base_offset, companions in indexes.items():
        segment = segments.get(base_offset)
        if segment is None:
            oddities += [Oddity(c.path, "an index without its segment") for c in companions]
        else:
            segments[base_offset] = msgspec.structs.replace(segment, companions=tuple(companions))

    def small(name: str, read: Callable[[str], _T]) -> _T | None:
        return read_small(folder, name, read, oddities) if name in sizes else None

    metadata = small(partition_metadata.NAME, partition_metadata.read_partition_metadata)
    return PartitionDirectory(
        path=folder,
        name=parse_partition(os.path.basename(os.path.abspath(folder))),
        topic_id=None if metadata is None else metadata.topic_id,
        segments=tuple(segments[base_offset] for base_offset in sorted(segments)),
        producer_snapshots=tuple(producers),
        snapshots=tuple(snapshots),
        working_files=tuple(working),
        leader_epochs=small(checkpoints.LEADER_EPOCHS, checkpoints.read_leader_epochs) or (),
        quorum_state=small(quorum_state.NAME, quorum_state.read_quorum_state),
        unknown=tuple(unknown),
        oddities=tuple(oddities),
    )


_SMALL_FILES = (partition_metadata.NAME, checkpoints.LEADER_EPOCHS, quorum_state.NAME)


def base_offsets(path: Path) -> list[int]:
    """The base offsets of a directory's segments, in order. NotKafka if it cannot be listed."""
    folder = os.fspath(path)
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise unreadable(folder, error) from error
    parsed = map(parse_segment_file, names)
    return sorted(
        p.offset for p in parsed if p and p.kind is FileKind.LOG and p.working is Working.NONE
    )


def list_files(folder: str, oddities: list[Oddity]) -> dict[str, int]:
    """The plain files of a directory with their sizes; others are oddities."""
    found: dict[str, int] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_file():
                        found[entry.name] = entry.stat().st_size
                    elif entry.is_symlink():
                        oddities.append(Oddity(entry.path, "a link that leads nowhere"))
                    else:
                        oddities.append(Oddity(entry.path, "not a plain file"))
                except FileNotFoundError:
                    continue  # gone since it was listed
                except OSError as error:
                    oddities.append(Oddity(entry.path, f"cannot be read: {error.strerror}"))
    except OSError as error:
        raise unreadable(folder, error) from error
    return found


def read_small(
    folder: str, name: str, read: Callable[[str], _T], oddities: list[Oddity]
) -> _T | None:
    """Read one small file; None, with an oddity unless it just vanished, where that fails."""
    path = os.path.join(folder, name)
    try:
        return read(path)
    except BadData as error:
        error.file = None  # the oddity has the path already
        oddities.append(Oddity(path, str(error)))
    except NotKafka as error:
        if not vanished(error):
            oddities.append(Oddity(path, str(error).removeprefix(f"{path}: ")))
    return None

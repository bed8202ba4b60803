"""From paths that a person gives to the files that hold records, in the order of reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from fnmatch import fnmatchcase

from msgspec import Struct

from kraftline.errors import NotKafka
from kraftline.storage.detect import PathKind, detect
from kraftline.storage.log_dir import read_log_directory
from kraftline.storage.metadata_dirs import (
    holds_metadata,
    is_metadata_segment,
    whole_snapshots,
)
from kraftline.storage.names import (
    METADATA_TOPIC,
    PartitionName,
    SnapshotState,
    base_offset_of,
    parse_partition,
    parse_snapshot,
)
from kraftline.storage.partition_dir import base_offsets, read_partition_directory


class Decoder(Enum):
    """How the keys and values of a log are typed."""

    METADATA = "metadata"
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    SHARE = "share"
    NONE = "none"


_BY_TOPIC = {
    METADATA_TOPIC: Decoder.METADATA,
    "__consumer_offsets": Decoder.OFFSETS,
    "__transaction_state": Decoder.TRANSACTIONS,
    "__share_group_state": Decoder.SHARE,
}


class Source(Struct, frozen=True):
    """A file of batches. `partition` is None where nothing says whose it is.

    `may_grow`: half a batch at its end is one that a broker is writing, and no damage.
    """

    path: str
    decoder: Decoder
    partition: PartitionName | None = None
    is_snapshot: bool = False
    may_grow: bool = False


class Wanted(Struct, frozen=True):
    """What to take of the paths: a decoder to force, topics by name or pattern, snapshots too."""

    decoder: Decoder | None = None
    topics: tuple[str, ...] = ()
    snapshots: bool = False

    def topic(self, name: str) -> bool:
        return not self.topics or any(fnmatchcase(name, pattern) for pattern in self.topics)


def find_sources(
    paths: Iterable[str], wanted: Wanted, on_trouble: Callable[[NotKafka], None]
) -> Iterator[Source]:
    """The sources behind paths; what is below a directory and cannot be read goes to `on_trouble`.

    A log directory gives its partitions by name, a partition its segments by offset. Internal
    logs are kept under a topic filter: their records may be about that topic.
    """
    for path in paths:
        kind = detect(path)
        match kind:
            case PathKind.SEGMENT:
                folder = os.path.dirname(os.path.abspath(path))
                partition = parse_partition(os.path.basename(folder))
                decoder = _decoder(partition, is_metadata_segment(path), wanted)
                yield Source(path, decoder, partition, may_grow=_is_newest(path, folder))
            case PathKind.SNAPSHOT | PathKind.BOOTSTRAP:
                yield _snapshot(path, wanted)
            case PathKind.PARTITION_DIRECTORY:
                yield from _partition(path, wanted)
            case PathKind.LOG_DIRECTORY:
                yield from _log_directory(path, wanted, on_trouble)
            case _:
                raise NotKafka(
                    f"{path}: this is Kafka's {kind.value}, which holds no records; "
                    "`kraftline info` explains it"
                )


def _decoder(partition: PartitionName | None, metadata: bool, wanted: Wanted) -> Decoder:
    if wanted.decoder is not None:
        return wanted.decoder
    if metadata:
        return Decoder.METADATA
    if partition is None:
        return Decoder.NONE
    return _BY_TOPIC.get(partition.topic, Decoder.NONE)


def _snapshot(path: str, wanted: Wanted) -> Source:
    name = parse_snapshot(os.path.basename(path))
    unfinished = name is not None and name.state is SnapshotState.PARTIAL
    decoder = wanted.decoder or Decoder.METADATA
    return Source(path, decoder, is_snapshot=True, may_grow=unfinished)


def _is_newest(path: str, folder: str) -> bool:
    """Whether no other segment beside it says that this one is finished."""
    base_offset = base_offset_of(path)
    try:
        return base_offset is None or base_offset >= max(base_offsets(folder), default=0)
    except NotKafka:
        return True  # its directory cannot be listed, so nothing says so


def _partition(path: str, wanted: Wanted) -> Iterator[Source]:
    directory = read_partition_directory(path)
    decoder = _decoder(directory.name, holds_metadata(directory), wanted)
    if wanted.snapshots:
        for snapshot in whole_snapshots(directory):
            yield _snapshot(snapshot.path, wanted)
    for segment in directory.segments:
        newest = segment is directory.segments[-1]
        yield Source(segment.path, decoder, directory.name, may_grow=newest)


def _log_directory(
    path: str, wanted: Wanted, on_trouble: Callable[[NotKafka], None]
) -> Iterator[Source]:
    directory = read_log_directory(path)
    if wanted.snapshots and directory.bootstrap is not None:
        yield _snapshot(directory.bootstrap, wanted)
    for place in directory.partitions:
        if wanted.topic(place.name.topic) or place.name.topic in _BY_TOPIC:
            try:
                yield from _partition(place.path, wanted)
            except NotKafka as error:
                on_trouble(error)

"""What a path is: a segment, an index, a snapshot, a partition's directory, a log directory."""

from __future__ import annotations

import enum
import os
import stat

from kraftline.errors import KraftlineError, NotKafka
from kraftline.storage import checkpoints, clean_shutdown, meta_properties, partition_metadata
from kraftline.storage import quorum_state as quorum
from kraftline.storage.batch_search import HEADER, implausible
from kraftline.storage.files import Path, unreadable
from kraftline.storage.names import (
    BOOTSTRAP,
    FileKind,
    parse_partition,
    parse_segment_file,
    parse_snapshot,
)
from kraftline.storage.snapshot_file import SnapshotReader


class PathKind(enum.Enum):
    SEGMENT = "segment"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    TXN_INDEX = "transaction index"
    PRODUCER_SNAPSHOT = "producer snapshot"
    SNAPSHOT = "metadata snapshot"
    BOOTSTRAP = "bootstrap checkpoint"
    OFFSET_CHECKPOINT = "offset checkpoint"
    LEADER_EPOCHS = "leader epoch checkpoint"
    META_PROPERTIES = "meta.properties"
    PARTITION_METADATA = "partition.metadata"
    QUORUM_STATE = "quorum state"
    CLEAN_SHUTDOWN = "clean shutdown marker"
    PARTITION_DIRECTORY = "partition directory"
    LOG_DIRECTORY = "log directory"


_BY_NAME = {
    BOOTSTRAP: PathKind.BOOTSTRAP,
    **dict.fromkeys(checkpoints.OFFSET_CHECKPOINTS, PathKind.OFFSET_CHECKPOINT),
    checkpoints.LEADER_EPOCHS: PathKind.LEADER_EPOCHS,
    meta_properties.NAME: PathKind.META_PROPERTIES,
    partition_metadata.NAME: PathKind.PARTITION_METADATA,
    quorum.NAME: PathKind.QUORUM_STATE,
    clean_shutdown.NAME: PathKind.CLEAN_SHUTDOWN,
}
_BY_FILE_KIND = {
    FileKind.LOG: PathKind.SEGMENT,
    FileKind.OFFSET_INDEX: PathKind.OFFSET_INDEX,
    FileKind.TIME_INDEX: PathKind.TIME_INDEX,
    FileKind.TXN_INDEX: PathKind.TXN_INDEX,
    FileKind.PRODUCER_SNAPSHOT: PathKind.PRODUCER_SNAPSHOT,
}
_OF_LOG_DIRECTORY = {meta_properties.NAME, BOOTSTRAP, *checkpoints.OFFSET_CHECKPOINTS}
_OF_PARTITION = {partition_metadata.NAME, checkpoints.LEADER_EPOCHS, quorum.NAME}


def detect(path: Path) -> PathKind:
    """Names decide first; a renamed file is a snapshot if it begins with a snapshot's header, and a
    segment if it begins with any other batch."""
    where = os.fspath(path)
    try:
        mode = os.stat(where).st_mode
        if stat.S_ISDIR(mode):
            return _directory(where)
        if not stat.S_ISREG(mode):
            raise NotKafka(f"{where}: neither a file nor a directory")
        return _file(where)
    except OSError as error:
        raise unreadable(where, error) from error


def _directory(where: str) -> PathKind:
    names = set(os.listdir(where))
    if _holds_segments(names):
        return PathKind.PARTITION_DIRECTORY
    if names & _OF_LOG_DIRECTORY:
        return PathKind.LOG_DIRECTORY
    if names & _OF_PARTITION:
        return PathKind.PARTITION_DIRECTORY
    hint = "give a directory named in log.dirs, or one of the partition directories in it"
    nodes = [
        path
        for path in (os.path.join(where, name) for name in sorted(names))
        if os.path.exists(os.path.join(path, meta_properties.NAME))
    ]
    if nodes:
        hint = f"did you mean {nodes[0]}?"
    elif not names:
        hint = f"it is empty; {hint}"
    elif any(_is_partition(where, name) for name in names):
        return PathKind.LOG_DIRECTORY
    raise NotKafka(f"{where}: not a directory of Kafka's ({hint})")


def _holds_segments(names: set[str]) -> bool:
    return any(parse_segment_file(name) or parse_snapshot(name) for name in names)


def _is_partition(where: str, name: str) -> bool:
    """By its name and by what is in it: /etc has a dbus-1, and nodes may be called node-1."""
    if parse_partition(name) is None:
        return False
    try:
        names = set(os.listdir(os.path.join(where, name)))
    except NotADirectoryError:
        return False
    except OSError:
        return True  # by its name, until somebody can look inside
    return _holds_segments(names) or bool(names & _OF_PARTITION)


def _file(where: str) -> PathKind:
    name = os.path.basename(where)
    if name in _BY_NAME:
        return _BY_NAME[name]
    segment_file = parse_segment_file(name)
    if segment_file is not None:
        return _BY_FILE_KIND[segment_file.kind]
    if parse_snapshot(name) is not None:
        return PathKind.SNAPSHOT
    with open(where, "rb") as file:
        head = file.read(HEADER.size)
    if len(head) == HEADER.size:
        base_offset, length, _, magic = HEADER.unpack(head)
        if implausible(base_offset, length, magic) is None:
            named = name.endswith(".checkpoint")
            return PathKind.SNAPSHOT if named or _has_header(where) else PathKind.SEGMENT
    raise NotKafka(
        f"{where}: not a file of Kafka's (segments are 20 digits and .log, "
        "snapshots 20 digits, a dash, 10 digits and .checkpoint)"
    )


def _has_header(where: str) -> bool:
    try:
        with SnapshotReader(where):
            return True
    except KraftlineError:
        return False

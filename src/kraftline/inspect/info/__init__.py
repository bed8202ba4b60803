"""`info`: what a path is and what is in it, without reading more than it must."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from kraftline.inspect.info.files import FileInfo, file_info
from kraftline.inspect.info.log_dirs import LogDirectoryInfo, log_directory_info
from kraftline.inspect.info.partitions import PartitionInfo, partition_info
from kraftline.storage.detect import PathKind, detect
from kraftline.storage.files import shown

__all__ = ["FileInfo", "Info", "LogDirectoryInfo", "PartitionInfo", "as_object", "as_rows", "info"]

Info: TypeAlias = LogDirectoryInfo | PartitionInfo | FileInfo


def info(path: str) -> Info:
    """Describe a path; NotKafka where it is nothing of Kafka's."""
    kind = detect(path)
    if kind is PathKind.LOG_DIRECTORY:
        return log_directory_info(path)
    if kind is PathKind.PARTITION_DIRECTORY:
        return partition_info(path)
    return file_info(path, kind)


def as_object(found: Info) -> dict[str, Any]:
    """One object for programs; `kind` says which."""
    kind = {LogDirectoryInfo: PathKind.LOG_DIRECTORY, PartitionInfo: PathKind.PARTITION_DIRECTORY}
    plain: dict[str, Any] = _plain(found)
    if not isinstance(found, FileInfo):
        plain = {"kind": kind[type(found)].value} | plain
    return plain


def as_rows(found: Info) -> list[dict[str, Any]]:
    """Flat rows for programs: partitions of a log directory, segments of a partition, a file."""
    if isinstance(found, FileInfo):
        plain = as_object(found)
        return [{k: v for k, v in plain.items() if k != "content"} | plain["content"]]
    if isinstance(found, PartitionInfo):
        return [_plain(segment) for segment in found.segments]
    partitions = [p for topic in found.topics for p in topic.partitions]
    if found.metadata_log is not None:
        partitions.insert(0, found.metadata_log)
    return [_flat(partition) for partition in (*partitions, *found.others)]


_ROW = (
    "topic",
    "partition",
    "state",
    "topic_id",
    "size",
    "segment_count",
    "first_offset",
    "end_offset",
    "first_timestamp",
    "last_timestamp",
    "path",
)


def _flat(partition: PartitionInfo) -> dict[str, Any]:
    return {name: _plain(getattr(partition, name)) for name in _ROW}


def _plain(value: Any) -> Any:
    """As builtins, with all text as every output takes it."""
    match value:
        case str():
            return shown(value)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case msgspec.Struct():
            return _plain(msgspec.to_builtins(value))
    return value

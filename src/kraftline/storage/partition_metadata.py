"""`partition.metadata`: the topic id of a partition directory. Two lines, no final newline."""

from __future__ import annotations

import re

import msgspec

from kraftline.errors import Corrupt, Unsupported
from kraftline.schema.uuids import ZERO, Uuid
from kraftline.storage.files import Path, Source, load, write_aside

NAME = "partition.metadata"
_LIMIT = 64 * 1024
_SPACES = re.compile(r"[ \t\x0b\f]+")
_LINE_ENDS = re.compile(r"\r\n|\n|\r")


class PartitionMetadata(msgspec.Struct, frozen=True):
    topic_id: Uuid
    version: int = 0


def read_partition_metadata(source: Source) -> PartitionMetadata:
    """Lines and versions after what this release knows are left alone, as Kafka leaves them."""
    data, file = load(source, _LIMIT)
    lines = _LINE_ENDS.split(data.decode("utf-8", "replace"))
    version_text = _value(lines, 0, file)
    if not (version_text.isascii() and version_text.removeprefix("-").isdigit()):
        raise Corrupt(f"line 1: {version_text[:80]!r} is not a version", file=file)
    # A bound on the digits: Python refuses to convert thousands of them.
    version = int(version_text[:11])
    if version < 0 or version > 2**31 - 1:
        raise Unsupported(f"version {version_text[:11]} of {NAME}", file=file, position=0)
    try:
        topic_id = Uuid.parse(_value(lines, 1, file))
    except ValueError as error:
        raise Corrupt(f"line 2: {error}", file=file) from error
    if topic_id == ZERO:
        raise Corrupt("line 2: the zero id is no topic's", file=file)
    return PartitionMetadata(topic_id, version)


def format_partition_metadata(metadata: PartitionMetadata) -> bytes:
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}".encode()


def write_partition_metadata(path: Path, metadata: PartitionMetadata) -> None:
    write_aside(path, format_partition_metadata(metadata))


def _value(lines: list[str], n: int, file: str | None) -> str:
    # Kafka looks only at the second word of a line, not at what the first one is.
    words = _SPACES.split(lines[n]) if n < len(lines) else []
    while words and words[-1] == "":
        words.pop()
    if len(words) != 2:
        raise Corrupt(f"line {n + 1} is not a name and a value", file=file)
    return words[1]

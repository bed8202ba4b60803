"""Kafka's text checkpoints: a version line, a count, then one entry per line.

Per log directory `TOPIC PARTITION OFFSET` (recovery points, high watermarks, log start offsets,
first dirty offsets of the cleaner); per partition `EPOCH STARTOFFSET` (leader epochs). Kafka
makes the files empty before it first writes them, so an empty file holds no entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from kraftline.errors import Corrupt, Unsupported
from kraftline.storage.files import Path, Source, load, write_aside

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS)
LEADER_EPOCHS = "leader-epoch-checkpoint"

VERSION = 0


class PartitionOffset(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int


class EpochStart(msgspec.Struct, frozen=True):
    """A leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


# Java's \s, by which Kafka splits: ASCII only, unlike Python's.
_SPACES = re.compile(r"[ \t\x0b\f]+")
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def read_offset_checkpoint(source: Source) -> tuple[PartitionOffset, ...]:
    """The entries in the order of the file."""
    rows, file = _rows(source, fields=3)
    return tuple(
        PartitionOffset(row[0], _integer(row[1], 32, file, line), _integer(row[2], 64, file, line))
        for line, row in rows
    )


def format_offset_checkpoint(entries: Iterable[PartitionOffset]) -> bytes:
    return _format(f"{e.topic} {e.partition} {e.offset}" for e in entries)


def write_offset_checkpoint(path: Path, entries: Iterable[PartitionOffset]) -> None:
    write_aside(path, format_offset_checkpoint(entries))


def read_leader_epochs(source: Source) -> tuple[EpochStart, ...]:
    """The epochs in the order of the file (Kafka writes them rising)."""
    rows, file = _rows(source, fields=2)
    return tuple(
        EpochStart(_integer(row[0], 32, file, line), _integer(row[1], 64, file, line))
        for line, row in rows
    )


def format_leader_epochs(entries: Iterable[EpochStart]) -> bytes:
    return _format(f"{e.epoch} {e.start_offset}" for e in entries)


def write_leader_epochs(path: Path, entries: Iterable[EpochStart]) -> None:
    write_aside(path, format_leader_epochs(entries))


def _format(lines: Iterable[str]) -> bytes:
    lines = list(lines)
    return "".join(f"{line}\n" for line in [str(VERSION), str(len(lines)), *lines]).encode()


def _rows(source: Source, fields: int) -> tuple[list[tuple[int, list[str]]], str | None]:
    data, file = load(source)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Corrupt("not UTF-8 text", file=file, position=error.start) from error
    lines = _LINE_ENDS.split(text)
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return [], file
    version = _integer(lines[0], 32, file, 1)
    if version != VERSION:
        raise Unsupported(f"version {version} of a checkpoint file", file=file, position=0)
    if len(lines) == 1:
        return [], file
    count = _integer(lines[1], 32, file, 2)
    rows = []
    for number, line in enumerate(lines[2:], 3):
        row = _SPACES.split(line)
        while row and row[-1] == "":
            row.pop()
        if len(row) != fields:
            raise Corrupt(f"line {number}: {line[:80]!r} does not have {fields} fields", file=file)
        rows.append((number, row))
    if len(rows) != count:
        raise Corrupt(f"{count} entries announced, {len(rows)} found", file=file)
    return rows, file


def _integer(text: str, bits: int, file: str | None, line: int) -> int:
    if _INTEGER.fullmatch(text) is not None:
        value = int(text)
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return value
    raise Corrupt(f"line {line}: {text[:80]!r} is not a number of {bits} bits", file=file)

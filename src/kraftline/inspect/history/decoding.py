"""Batches to metadata records, many at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from kraftline.errors import BadData, NotKafka
from kraftline.inspect.history.batches import Batch
from kraftline.inspect.history.trouble import Trouble
from kraftline.records.compression import Scratch
from kraftline.records.runs import positions, prepare
from kraftline.schema.metadata.frame import RecordReader
from kraftline.schema.types import Message
from kraftline.storage.files import unreadable

# How much is read and decoded in one go: enough to keep calls few, and memory warm.
_CHUNK = 1024 * 1024
# Kafka does not compress metadata; what hostile bytes may make of themselves.
_MOST_OPENED = 64 * 1024 * 1024
_NO_OP = 20

OnTrouble: TypeAlias = Callable[[Trouble], None]
# Told how many bytes more were done.
Progress: TypeAlias = Callable[[int], None]


class Record(msgspec.Struct, gc=False):
    """A plain struct: millions are made, and a named tuple takes three times as long."""

    offset: int
    message: Message


def read_records(
    batches: Sequence[Batch], trouble: OnTrouble, progress: Progress | None = None
) -> Iterator[list[Record]]:
    """The records of batches, which may be in several files; control batches have none here, and
    NoOp records are left out. A record that cannot be read goes to `trouble`; `progress` hears of
    the bytes that are done."""
    scratch = Scratch()
    first = 0
    while first < len(batches):
        if batches[first].is_control:
            first += 1
            continue
        file, start = batches[first].file, batches[first].position
        last, end = first, start
        # Neighbours in one file are read together.
        while (
            last < len(batches)
            and batches[last].file == file
            and batches[last].position == end
            and not batches[last].is_control
            and (end == start or end - start + batches[last].size <= _CHUNK)
        ):
            end += batches[last].size
            last += 1
        data = _load(file, start, end - start)
        yield decode(data, trouble, scratch, file=file, position=start)
        if progress is not None:
            progress(len(data))
        first = last


def decode(
    data: bytes,
    trouble: OnTrouble,
    scratch: Scratch | None = None,
    *,
    file: str | None = None,
    position: int = 0,
) -> list[Record]:
    """The records of sound batches, back to back; those that do nothing are left out."""

    def tell(error: BadData) -> None:
        trouble(Trouble(error.reason, file, error.position, error.offset))

    found: list[Record] = []
    run = prepare(
        data,
        position=position,
        check_crc=False,
        on_error=tell,
        limit=_MOST_OPENED,
        scratch=scratch,
    )
    append = found.append
    for source, numbers, stride in positions(run):
        plain = source.obj
        if not isinstance(plain, bytes):  # it was compressed
            plain = bytes(source)
        read = RecordReader(plain).read
        for offset, start, end in zip(
            numbers[0::stride], numbers[4::stride], numbers[5::stride], strict=True
        ):
            if end - start > 1 and plain[start + 1] == _NO_OP and plain[start] == 1:
                continue
            if end < start:
                trouble(Trouble("a metadata record without a value", file, None, offset))
                continue
            try:
                append(Record(offset, read(start, end)[0]))
            except BadData as error:
                trouble(Trouble(f"a record cannot be read: {error.reason}", file, None, offset))
    return found


def read_bytes(batch: Batch) -> bytes:
    return _load(batch.file, batch.position, batch.size)


def _load(file: str, start: int, size: int) -> bytes:
    try:
        with open(file, "rb", buffering=0) as source:
            data = os.pread(source.fileno(), size, start)
    except OSError as error:  # a live node drops old segments
        raise unreadable(file, error) from error
    if len(data) < size:
        raise NotKafka(f"{file}: became shorter while it was read; try again")
    return data

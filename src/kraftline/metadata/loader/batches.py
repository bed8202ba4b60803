"""What the loader is fed: batches of a metadata log or snapshot, decoded one at a time.

A record that cannot be decoded stays in its place as `Unreadable`, so that whoever replays can say
at which offset it is and go on with the next.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from kraftline.errors import BadData, Corrupt, Unsupported
from kraftline.records.batch import Batch, DefaultBatch
from kraftline.records.control import Control, read_control
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import positions, prepare
from kraftline.schema.metadata.frame import RecordReader, decode_record
from kraftline.schema.types import Message
from kraftline.storage.segment import Run, SegmentReader

_CONTROL = 0x20
_CONTROL_OR_PACKED = 0x27
_FIRST_ROOM = 1024
# What reading a value raises: bytes of something else, or a null, which has no end.
_NO_RECORD = (BadData, ValueError)
# Windows of this size stay in the processor's caches, and their records are young when they go.
_WINDOW = 512 * 1024


class Unreadable(msgspec.Struct, frozen=True):
    """The place of a record whose bytes are not a metadata record, and why."""

    value: bytes | None
    error: BadData


Entry: TypeAlias = Message | Unreadable


class MetadataBatch(msgspec.Struct, frozen=True):
    """A batch whose record `i` is at offset `base_offset + i`. Control batches have `controls`
    and no records. `append_timestamp` is the largest time in it."""

    base_offset: int
    last_offset: int
    epoch: int
    append_timestamp: int
    size: int
    records: Sequence[Entry]
    controls: Sequence[Control] = ()


def part_of(batch: MetadataBatch, first: int, last: int) -> MetadataBatch:
    """The batch without what is before one offset and behind another."""
    if first <= batch.base_offset and last >= batch.last_offset:
        return batch
    start, stop = max(first - batch.base_offset, 0), min(last, batch.last_offset) + 1
    kept = slice(start, max(stop - batch.base_offset, start))
    return msgspec.structs.replace(
        batch,
        base_offset=batch.base_offset + start,
        last_offset=stop - 1,
        records=batch.records[kept],
        controls=batch.controls[kept],
    )


class BatchDecoder:
    """Decodes batches of one stream; those that share a buffer share a reader of it."""

    def __init__(self) -> None:
        self._buffer: memoryview | None = None
        self._reader = RecordReader(b"")
        self._row = array("q", bytes(8 * kernel.STRIDE))
        self._totals = array("q", bytes(8 * kernel.TOTALS))
        self._places = array("q", bytes(8 * kernel.P_STRIDE * _FIRST_ROOM))

    def decode(self, batch: Batch) -> MetadataBatch:
        """The batch with its records; its checksum has been compared before. BadData where the
        records cannot even be told apart."""
        if batch.magic != 2:
            raise Unsupported(
                f"a batch of format {batch.magic} in a metadata log",
                position=batch.position,
                offset=batch.base_offset,
            )
        controls: list[Control] = []
        if batch.attributes & _CONTROL_OR_PACKED:
            records = batch.records(check_crc=False)
            if batch.is_control:
                controls = [read_control(record) for record in records]
                entries: Sequence[Entry] = []
            else:
                entries = [_entry(record.value, record.offset) for record in records]
        else:
            entries = self._entries(batch)
        base, last = batch.base_offset, batch.last_offset
        if len(entries) + len(controls) != last - base + 1:
            # Offsets are counted from the base: a metadata log is never compacted.
            raise Corrupt(
                f"{len(entries) + len(controls)} records in a batch of {last - base + 1} offsets",
                position=batch.position,
                offset=base,
            )
        return MetadataBatch(
            base,
            last,
            batch.partition_leader_epoch,
            batch.max_timestamp,
            batch.size_in_bytes,
            entries,
            controls,
        )

    def _entries(self, batch: Batch) -> Sequence[Entry]:
        view, start = batch.buffer, batch.start
        if view is not self._buffer:
            self._buffer, self._reader = view, RecordReader(bytes(view))
        row = self._row
        base = batch.position - start
        kernel.scan(view, start, start + batch.size_in_bytes, base, row)
        kernel.measure(view, row, 0, 1, self._totals)
        room = row[kernel.COUNT] * kernel.P_STRIDE
        if room > len(self._places):
            self._places = array("q", bytes(8 * room))
        places = self._places
        kernel.positions(view, row, 0, 1, places)
        starts = places[kernel.P_VALUE : room : kernel.P_STRIDE]
        ends = places[kernel.P_VALUE_END : room : kernel.P_STRIDE]
        try:
            return self._reader.read(starts, ends)
        except _NO_RECORD:
            return [
                _entry(None if end < 0 else bytes(view[at:end]), batch.base_offset + index)
                for index, (at, end) in enumerate(zip(starts, ends, strict=True))
            ]


def _entry(value: bytes | None, offset: int) -> Entry:
    if value is None:
        return Unreadable(None, Corrupt("a metadata record without a value", offset=offset))
    try:
        return decode_record(value)[0]
    except BadData as error:
        return Unreadable(value, error.at(offset=offset))


def decode_batches(batches: Iterable[Batch]) -> Iterator[MetadataBatch]:
    """Batches decoded in turn, each when it is asked for."""
    decoder = BatchDecoder()
    return map(decoder.decode, batches)


def read_log(
    reader: SegmentReader,
    start: int = 0,
    end: int | None = None,
    *,
    check: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Iterator[MetadataBatch]:
    """The batches of a metadata log's segment from a position on; `check` compares checksums.
    What is damaged goes to the reader's `on_damage`, or is raised where it has none. `progress`
    hears now and then how many bytes more were done."""
    decoder = BatchDecoder()
    for run in reader.runs(start, end, keep=True, window=_WINDOW):
        for found in _run_batches(run, reader, check):
            if isinstance(found, MetadataBatch):
                yield found
                continue
            try:
                decoded = decoder.decode(found)
            except BadData as error:
                reader.report(found.position, found.size_in_bytes, error.reason, error.offset)
            else:
                yield decoded
        if progress is not None:
            progress(run.end - run.start)


def _run_batches(run: Run, reader: SegmentReader, check: bool) -> Iterator[MetadataBatch | Batch]:
    """Batches of a run, decoded where they are plain, else as they are. The records of all are
    located in one call: with a call for each small batch this takes half as long again."""
    view, base = memoryview(run.buffer), run.position - run.start
    try:
        ready = prepare(view, run.start, run.end, position=base, check_crc=check)
    except BadData:
        ready = None
    if ready is None or len(ready.groups) != 1 or ready.table[kernel.ATTRIBUTES] & 7:
        # Damaged, or packed, which Kafka never does: the slow way finds out.
        stop = run.position + run.end - run.start
        yield from (batch for batch, _ in reader.batches(run.position, stop, check=check))
        return
    (places,) = positions(ready)
    starts = places.numbers[kernel.P_VALUE :: places.stride]
    ends = places.numbers[kernel.P_VALUE_END :: places.stride]
    read = RecordReader(bytes(run.buffer)).read
    table, at = ready.table, 0
    for row in range(ready.groups[0].last):
        (position, size, _, attributes, count, offset, _, time, _, _, _, epoch, _, _, delta, _) = (
            table[row * kernel.STRIDE : (row + 1) * kernel.STRIDE]
        )
        first, at = at, at + count
        if not attributes & _CONTROL and count == delta + 1:
            try:
                records = read(starts[first:at], ends[first:at])
            except _NO_RECORD:
                pass
            else:
                yield MetadataBatch(offset, offset + delta, epoch, time, size, records)
                continue
        yield DefaultBatch(view, position - base, size, position)

"""Walks a file of batches once and hands what it sees to the checks: columns, records, an end.

Framing, checksums, compression and the shape of records are judged here; what batches mean to
each other is judged by the checks that are fed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from operator import add
from typing import NamedTuple, Protocol

from kraftline.errors import BadData, KraftlineError, NotKafka, TooLarge, Unsupported
from kraftline.inspect.verify.findings import Report
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import Run, prepare
from kraftline.storage.files import vanished
from kraftline.storage.segment import Damage, SegmentReader, Tail, TailKind

_WINDOW = 4 * 1024 * 1024
# Compressed batches are opened until so much lies uncompressed in memory.
_BUDGET = 16 * 1024 * 1024
_CODEC = 0x07
_CODECS = ("gzip:", "snappy:", "lz4:", "zstd:")
_COUNTS = ("count of", "bytes left over after", "no messages inside")


class Rows(NamedTuple):
    """Header fields of neighbouring batches, a column each.

    `untrusted` are positions of batches with a wrong checksum: only their framing counts.
    """

    untrusted: frozenset[int]
    positions: Sequence[int]
    sizes: Sequence[int]
    magics: Sequence[int]
    attributes: Sequence[int]
    base_offsets: Sequence[int]
    last_offsets: Sequence[int]
    max_timestamps: Sequence[int]
    epochs: Sequence[int]
    producer_ids: Sequence[int]

    def trusted(self) -> Rows:
        """Without the batches whose headers may lie."""
        if not self.untrusted:
            return self
        keep = [n for n, position in enumerate(self.positions) if position not in self.untrusted]
        columns: list[Sequence[int]] = [
            [column[n] for n in keep]
            for column in (
                self.positions,
                self.sizes,
                self.magics,
                self.attributes,
                self.base_offsets,
                self.last_offsets,
                self.max_timestamps,
                self.epochs,
                self.producer_ids,
            )
        ]
        return Rows(frozenset(), *columns)


class Check(Protocol):
    """Something that looks at the batches as the walk comes by."""

    def rows(self, rows: Rows) -> None:
        """Headers, in the order of the file."""

    def records(self, run: Run) -> None:
        """Batches whose records can be decoded, right after their headers."""


class Walked(NamedTuple):
    """What a walk came to: where good bytes end, and the offset after the last batch."""

    end: int
    next_offset: int | None
    tail: Tail | None


class _Walk:
    def __init__(self, path: str, report: Report, checks: Sequence[Check]) -> None:
        self.path = path
        self.report = report
        self.checks = checks
        self.scratch = report.scratch
        self.untrusted: set[int] = set()
        self.next_offset: int | None = None
        # A wrong checksum right before preallocated zeros is a half-written batch: wait and see.
        self.suspect: tuple[int, int, BadData, bytes] | None = None

    def damage(self, damage: Damage) -> None:
        self.settle()
        # Zeros where a batch is now: a broker was writing it while we looked.
        if damage.reason.startswith("length 0 ") and _there_now(self.path, damage.position):
            return
        code = "batch-framing"
        if damage.too_large:
            code = "batch-too-large"
        elif "checksum" in damage.reason:
            code = "batch-crc"
        elif "magic" in damage.reason:
            code = "batch-magic"
        try:
            with open(self.path, "rb") as file:
                file.seek(damage.position)
                start = file.read(64)
        except OSError:
            start = b""
        self.report.add(
            code,
            self.path,
            f"{damage.reason} ({damage.length:,} bytes passed over)",
            position=damage.position,
            offset=damage.offset,
            data=start,
        )

    def settle(self) -> None:
        """Tell of the suspect: more batches follow it, so it is no half-written tail."""
        if self.suspect is not None:
            position, _, error, start = self.suspect
            self.suspect = None
            if _there_now(self.path, position):
                return
            self.report.add(
                "batch-crc",
                self.path,
                error.reason,
                position=position,
                offset=error.offset,
                data=start,
            )

    def run(self, buffer: memoryview, start: int, end: int, position: int) -> None:
        """Judge the batches of buffer[start:end]; `position` is of the buffer's first byte."""
        bad: list[BadData] = []
        while start < end:
            run = prepare(
                buffer,
                start,
                end,
                position=position,
                on_error=bad.append,
                scratch=self.scratch,
                budget=_BUDGET,
            )
            self.untrusted = {e.position or 0 for e in bad if "checksum" in e.reason}
            rows = _rows(run, position + run.end, frozenset(self.untrusted))
            if self.suspect is not None and rows.positions:
                self.settle()
            for error in bad:
                self.problem(error, rows, buffer, position)
            bad.clear()
            if 0 in rows.magics:
                self.wrappers(rows, buffer, position)
            self.report.batches += len(rows.positions)
            self.report.records += run.records
            if rows.last_offsets:
                self.next_offset = rows.last_offsets[-1] + 1
            for check in self.checks:
                check.rows(rows)
                check.records(run)
            self.scratch.shrink()
            start = run.end

    def wrappers(self, rows: Rows, buffer: memoryview, position: int) -> None:
        """A compressed message set of v0 has offsets of its own inside, which readers believe; its
        header, by which it is found, must have the last of them. No checksum covers it."""
        for n, magic in enumerate(rows.magics):
            if magic != 0 or not rows.attributes[n] & _CODEC:
                continue
            where = rows.positions[n]
            start = bytes(buffer[where - position : where - position + 64])
            named = int.from_bytes(start[:8], "big", signed=True)
            if named != rows.last_offsets[n] and where not in rows.untrusted:
                problem = f"offset {named}, but the last message inside has {rows.last_offsets[n]}"
                self.report.add(
                    "batch-offset", self.path, problem, position=where, offset=named, data=start
                )

    def half_written(self, reader: SegmentReader) -> Tail | None:
        """The file's tail; a suspect right before preallocated zeros belongs to it."""
        tail, suspect = reader.tail, self.suspect
        if suspect is None or tail is None or tail.kind is not TailKind.ZEROS:
            return tail
        if tail.position != suspect[1]:
            return tail
        self.suspect = None
        return Tail(TailKind.PARTIAL, suspect[0], reader.size() - suspect[0])

    def problem(self, error: BadData, rows: Rows, buffer: memoryview, position: int) -> None:
        where = error.position or 0
        start = bytes(buffer[where - position : where - position + 64])
        if where in self.untrusted:
            row = bisect_left(rows.positions, where)
            end = where + rows.sizes[row]
            if row == len(rows.positions) - 1:
                self.suspect = (where, end, error, start)
                return
        code, reason = _code(error), error.reason
        self.report.add(code, self.path, reason, position=where, offset=error.offset, data=start)


def walk(path: str, report: Report, checks: Sequence[Check]) -> Walked | None:
    """Walk a file; None where it cannot be read (which is told) or has vanished (which is not)."""
    job = _Walk(path, report, checks)
    end = 0
    try:
        with SegmentReader(path, window=_WINDOW, on_damage=job.damage) as reader:
            for found in reader.runs():
                base = found.position - found.start
                job.run(memoryview(found.buffer), found.start, found.end, base)
                end = base + found.end
                report.walked(found.end - found.start)
            tail = job.half_written(reader)
            job.settle()
    except NotKafka as error:
        if not vanished(error):
            report.add("unreadable", path, str(error).removeprefix(f"{path}: "))
        return None
    except OSError as error:
        report.add("unreadable", path, f"cannot be read: {error.strerror or error}")
        return None
    report.files += 1
    return Walked(end, job.next_offset, tail)


def _there_now(path: str, position: int) -> bool:
    """Whether a whole batch with a right checksum is there at a second look."""
    try:
        with SegmentReader(path) as reader:
            return any(True for _ in reader.batches(position, position + 1))
    except (KraftlineError, OSError):
        return False


def _rows(run: Run, end: int, untrusted: frozenset[int]) -> Rows:
    table, stride = run.table, kernel.STRIDE
    sizes = table[kernel.SIZE :: stride]
    count = sizes.index(0) if 0 in sizes else len(sizes)
    # A run that stopped at its budget has scanned further than it went.
    count = bisect_left(table[kernel.POSITION : count * stride : stride], end)

    def column(n: int) -> array[int]:
        return table[n : count * stride : stride]

    base = column(kernel.BASE_OFFSET)
    return Rows(
        positions=column(kernel.POSITION),
        sizes=sizes[:count],
        magics=column(kernel.MAGIC),
        attributes=column(kernel.ATTRIBUTES),
        base_offsets=base,
        # A list: hostile headers add up to more than 64 bits.
        last_offsets=list(map(add, base, column(kernel.LAST_OFFSET_DELTA))),
        max_timestamps=column(kernel.MAX_TIMESTAMP),
        epochs=column(kernel.LEADER_EPOCH),
        producer_ids=column(kernel.PRODUCER_ID),
        untrusted=untrusted,
    )


def _code(error: BadData) -> str:
    reason = error.reason
    if isinstance(error, TooLarge):
        return "batch-too-large"
    if "checksum of the" in reason:
        return "batch-crc"
    if isinstance(error, Unsupported) or "cannot be compressed with" in reason:
        return "batch-codec"
    if reason.startswith(_CODECS):
        return "batch-decompress"
    if "base offset" in reason:
        return "batch-offset"
    if any(words in reason for words in _COUNTS):
        return "batch-count"
    return "record-framing"

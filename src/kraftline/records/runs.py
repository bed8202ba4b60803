"""A run of batches made ready for the kernel: framed, checksums compared, uncompressed.

This is the fast way to many records: `tuples` and `positions` here, columns in `arrow.py`.
Damage either raises, with file position and reason, or goes to a callback and the run carries on
with the next batch, as far as the framing allows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import google_crc32c

from kraftline.errors import BadData, Corrupt
from kraftline.records.batch import codec_of
from kraftline.records.checksums import function_of_c
from kraftline.records.compression import DEFAULT_LIMIT, Scratch, decompress_behind
from kraftline.records.framing import as_view, framing_error
from kraftline.records.kernel import active as kernel
from kraftline.records.legacy import LegacyBatch
from kraftline.records.record import Bytes, Codec, Header
from kraftline.records.write import encode_records

OnError: TypeAlias = Callable[[BadData], None]

Fields: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...], int]

_FIRST_ROWS = 512
_FEW_ROWS = 8  # are not worth looking for a function of C
_ROOM = 1024 * 1024  # larger batches are unpacked one by one


class Group(NamedTuple):
    """Neighbouring batches whose records lie uncompressed in one piece of memory."""

    source: memoryview
    first: int
    last: int


class Run:
    """Batches ready to be decoded; the memory is good until its scratch is used again.

    `table` holds one row of header fields per batch (see the kernel), `groups` say which rows to
    decode and from where, `totals` what that takes, once they are `measured`; `end` is where the
    next run starts.
    """

    __slots__ = ("end", "groups", "measured", "table", "totals")

    def __init__(self, table: array[int], groups: list[Group], totals: array[int], end: int):
        self.table = table
        self.groups = groups
        self.totals = totals
        self.end = end
        self.measured = True

    @property
    def records(self) -> int:
        return int(self.totals[kernel.RECORDS])


def prepare(
    buffer: Bytes,
    start: int = 0,
    end: int | None = None,
    *,
    position: int = 0,
    check_crc: bool = True,
    on_error: OnError | None = None,
    limit: int = DEFAULT_LIMIT,
    scratch: Scratch | None = None,
    budget: int | None = None,
    partial: bool = False,
    measured: bool = True,
) -> Run:
    """Make the batches of `buffer` ready.

    `position` is where the buffer's first byte stands in its file. With `budget` the run ends
    after the batch that brings it past so many uncompressed bytes. With `partial` a batch that
    is cut off at the end is left for the next run; otherwise it is an error. Without `measured`
    the records may be left for `measure` to look at.
    """
    view = as_view(buffer)
    stop = len(view) if end is None else min(end, len(view))
    scratch = Scratch() if scratch is None else scratch
    table, rows, at, why = _scan(view, start, stop, position, budget)
    problem: BadData | None = None
    if why not in (kernel.AT_END, kernel.TABLE_FULL) and not (partial and why == kernel.CUT):
        problem = framing_error(view, at, stop, why, position + at)
    framed = at
    allowed = float("inf") if budget is None else budget
    if at - start <= allowed and _are_plain(view, table, rows, position, check_crc):
        good = [(False, 0, rows)]
    else:
        good, at = _open(
            view, table, rows, at, position, check_crc, on_error, limit, scratch, allowed
        )
    groups = [Group(scratch.view if inside else view, first, last) for inside, first, last in good]
    run = Run(table, groups, array("q", bytes(8 * kernel.TOTALS)), at)
    run.measured = False
    if measured or problem is not None:  # damage is told of in order
        measure(run, on_error)
    if problem is not None and at == framed:  # damage further ahead was reported first
        if on_error is None:
            raise problem
        on_error(problem)
        run.end = stop
    return run


def measure(run: Run, on_error: OnError | None = None) -> None:
    """Look at every record; batches with one that is damaged leave the run."""
    found: list[Group] = []
    for source, first, last in run.groups:
        found += _measured(source, run.table, first, last, run.totals, on_error)
    run.groups, run.measured = found, True


def _scan(
    view: memoryview, start: int, stop: int, position: int, budget: int | None
) -> tuple[array[int], int, int, int]:
    """The table of all batches: (table, rows, where it stopped, why)."""
    table = array("q", bytes(8 * kernel.STRIDE * _FIRST_ROWS))
    rows, at = 0, start
    while True:
        more, at, why = kernel.scan(
            view, at, stop, position, memoryview(table)[rows * kernel.STRIDE :]
        )
        rows += more
        enough = budget is not None and at - start >= budget
        if why != kernel.TABLE_FULL or enough:
            return table, rows, at, why
        table = table + array("q", bytes(3 * 8 * len(table)))


def _are_plain(
    view: memoryview, table: array[int], rows: int, position: int, check_crc: bool
) -> bool:
    """Whether nothing has to be uncompressed or complained about, where that can be told for all at
    once, in a time in which other threads run."""
    if not kernel.COMPILED or rows < _FEW_ROWS:
        return False
    function = function_of_c() if check_crc else 0
    if check_crc and not function:
        return False
    return bool(kernel.are_plain(view, table, rows, position, function))


def _open(
    view: memoryview,
    table: array[int],
    rows: int,
    at: int,
    position: int,
    check_crc: bool,
    on_error: OnError | None,
    limit: int,
    scratch: Scratch,
    budget: float,
) -> tuple[list[tuple[bool, int, int]], int]:
    """Compare checksums and uncompress: ([(in scratch?, first row, last row)], where it ends)."""
    good: list[tuple[bool, int, int]] = []
    used = plain = row = 0
    stride, end = kernel.STRIDE, at
    value = google_crc32c.value
    fields = (kernel.POSITION, kernel.SIZE, kernel.MAGIC, kernel.ATTRIBUTES, kernel.CRC)
    while row < rows:
        t = row * stride
        place, size, magic, attributes, stored = (table[t + field] for field in fields)
        start = place - position
        if used + plain >= budget:
            end = start
            break
        packed = magic != 2 or bool(attributes & 7 and table[row * stride + kernel.COUNT])
        if packed and magic == 2 and attributes & 7 == Codec.ZSTD:
            done, used = _unpack_many(
                view, table, row, rows, position, check_crc, limit, scratch, used, budget - plain
            )
            if done > row:
                _add(good, True, row, done)
                row = done
                continue
        try:
            if check_crc and magic == 2:
                crc = value(bytes(view[start + 21 : start + size]))
                if crc != stored & 0xFFFFFFFF:
                    _bad_crc(table, row * stride, crc)
            if packed:
                used = _unpack(view, table, row * stride, start, check_crc, limit, scratch, used)
            else:
                plain += size
        except BadData as problem:
            problem.at(position=place, offset=table[row * stride + kernel.BASE_OFFSET])
            if on_error is None:
                raise
            on_error(problem)
        else:
            _add(good, packed, row, row + 1)
        row += 1
    return good, end


def _add(good: list[tuple[bool, int, int]], inside: bool, first: int, last: int) -> None:
    if good and good[-1][0] is inside and good[-1][2] == first:
        first = good.pop()[1]
    good.append((inside, first, last))


def _unpack_many(
    view: memoryview,
    table: array[int],
    row: int,
    rows: int,
    position: int,
    check_crc: bool,
    limit: int,
    scratch: Scratch,
    used: int,
    enough: float,
) -> tuple[int, int]:
    """Put batches of zstd from `row` on into `scratch` in one call, in a time in which other
    threads run: (the first row that is not done, bytes used). What it leaves needs a closer look.
    """
    if not kernel.COMPILED or rows < _FEW_ROWS:
        return row, used
    checksum, frames = function_of_c() if check_crc else 0, scratch.frames
    if not frames.function or (check_crc and not checksum):
        return row, used
    scratch.make_room(used, _ROOM)
    done, used = kernel.unpack(
        view,
        table,
        row,
        rows,
        position,
        scratch.view,
        used,
        int(min(enough, len(scratch.view))),
        limit,
        checksum,
        frames.function,
        frames.context,
    )
    return done, used


def _unpack(
    view: memoryview,
    table: array[int],
    t: int,
    start: int,
    check_crc: bool,
    limit: int,
    scratch: Scratch,
    used: int,
) -> int:
    """Put a batch's records into `scratch` behind its first `used` bytes; where they end."""
    if table[t + kernel.MAGIC] != 2:
        return _modernise(view, table, t, start, check_crc, limit, scratch, used)
    packed = view[start + 61 : start + table[t + kernel.SIZE]]
    codec = codec_of(table[t + kernel.ATTRIBUTES] & 7, table[t], table[t + kernel.BASE_OFFSET])
    end = decompress_behind(codec, packed, scratch, used, limit=limit)
    table[t + kernel.BODY], table[t + kernel.BODY_END] = used, end
    return end


def _bad_crc(table: array[int], t: int, crc: int) -> None:
    stored = table[t + kernel.CRC] & 0xFFFFFFFF
    raise Corrupt(
        f"the checksum of the batch is {stored:#010x}, its bytes give {crc:#010x}",
        position=table[t + kernel.POSITION],
        offset=table[t + kernel.BASE_OFFSET],
    )


def _modernise(
    view: memoryview,
    table: array[int],
    t: int,
    start: int,
    check_crc: bool,
    limit: int,
    scratch: Scratch,
    used: int,
) -> int:
    """Put the records of an old batch into `scratch` as v2 records, for the kernel to read."""
    old = LegacyBatch(view, start, table[t + kernel.SIZE], table[t + kernel.POSITION])
    records = old.records(check_crc=check_crc, limit=limit)
    first, last = records[0].offset, records[-1].offset
    body = encode_records(records, first, 0)
    scratch.make_room(used, len(body))
    scratch.view[used : used + len(body)] = body
    table[t + kernel.BASE_OFFSET] = first
    table[t + kernel.LAST_OFFSET_DELTA] = last - first
    table[t + kernel.BASE_TIMESTAMP] = 0
    table[t + kernel.COUNT] = len(records)
    table[t + kernel.BODY] = used
    table[t + kernel.BODY_END] = used + len(body)
    return used + len(body)


def _measured(
    source: memoryview,
    table: array[int],
    first: int,
    last: int,
    totals: array[int],
    on_error: OnError | None,
) -> Iterator[Group]:
    try:
        kernel.measure(source, table, first, last, totals)
    except BadData as problem:
        if on_error is None:
            raise
        if last - first == 1:
            on_error(problem)
            return
    else:
        yield Group(source, first, last)
        return
    # Somewhere in here is a bad batch: the halves will show where.
    middle = (first + last) // 2
    yield from _measured(source, table, first, middle, totals, on_error)
    yield from _measured(source, table, middle, last, totals, on_error)


def tuples(
    buffer: Bytes,
    *,
    position: int = 0,
    check_crc: bool = True,
    on_error: OnError | None = None,
    limit: int = DEFAULT_LIMIT,
    budget: int = 256 * 1024,
) -> Iterator[list[Fields]]:
    """(offset, timestamp, key, value, headers, sequence) of every record, some batches at a time.

    Lists of about `budget` bytes keep to memory that is warm already: 7 million records of 100
    bytes a second, against 3 million for lists of 8 MB.
    """
    view, scratch, at = as_view(buffer), Scratch(), 0
    while at < len(view):
        run = prepare(
            view,
            at,
            position=position,
            check_crc=check_crc,
            on_error=on_error,
            limit=limit,
            scratch=scratch,
            budget=budget,
        )
        at = run.end
        for source, first, last in run.groups:
            yield kernel.tuples(source, run.table, first, last)


class Places(NamedTuple):
    """Records of a run by place: `numbers` has `stride` of them for each record.

    They are: offset, timestamp, start and end of the key, start and end of the value (an end of
    -1 is a null), where the headers start, and the batch's row in the run's table.
    """

    source: memoryview
    numbers: array[int]
    stride: int


def positions(run: Run) -> Iterator[Places]:
    """Where each record's parts stand in memory, for readers that need no copies."""
    for source, first, last in run.groups:
        count = sum(run.table[row * kernel.STRIDE + kernel.COUNT] for row in range(first, last))
        numbers = array("q", bytes(8 * kernel.P_STRIDE * count))
        kernel.positions(source, run.table, first, last, numbers)
        yield Places(source, numbers, kernel.P_STRIDE)

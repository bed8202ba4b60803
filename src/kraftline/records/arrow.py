"""Runs of batches to Arrow record batches, column by column, without passing through objects.

Columns (`COLUMNS`): offset, timestamp (int64, milliseconds since 1970, -1 for none: an Arrow
timestamp cannot say "none" without a null, and hostile values would not survive a cast),
timestamp_type (-1 none, 0 CreateTime, 1 LogAppendTime), key, value, headers, leader_epoch,
producer_id, producer_epoch, sequence, codec (Kafka's numbers), is_transactional, is_control,
and position: where the record's batch starts in the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

try:
    import pyarrow as pa
except ModuleNotFoundError as error:
    words = f"columns need {error.name}: pip install 'kraftline[arrow]'"
    raise ModuleNotFoundError(words, name=error.name) from None

from kraftline.errors import Corrupt, TooLarge
from kraftline.records.compression import DEFAULT_LIMIT, Scratch
from kraftline.records.kernel import active as kernel
from kraftline.records.record import Bytes
from kraftline.records.runs import OnError, Run, prepare

_HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER, nullable=False)), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int16(), nullable=False),
        pa.field("sequence", pa.int32(), nullable=False),
        pa.field("codec", pa.int8(), nullable=False),
        pa.field("is_transactional", pa.bool_(), nullable=False),
        pa.field("is_control", pa.bool_(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
    ]
)
COLUMNS: Final = tuple(SCHEMA.names)

# Plain columns: where the kernel wants their place, and bytes per record (0: one bit).
_PLAIN = {
    "offset": (kernel.B_OFFSET, 8),
    "timestamp": (kernel.B_TIMESTAMP, 8),
    "timestamp_type": (kernel.B_TIMESTAMP_TYPE, 1),
    "leader_epoch": (kernel.B_EPOCH, 4),
    "producer_id": (kernel.B_PRODUCER, 8),
    "producer_epoch": (kernel.B_PRODUCER_EPOCH, 2),
    "sequence": (kernel.B_SEQUENCE, 4),
    "codec": (kernel.B_CODEC, 1),
    "is_transactional": (kernel.B_TRANSACTIONAL, 0),
    "is_control": (kernel.B_CONTROL, 0),
    "position": (kernel.B_POSITION, 8),
}
_KINDS = dict(zip(SCHEMA.names, SCHEMA.types, strict=True))
_MAX_BINARY = 0x7FFFFFFF
_LEAST = 7  # bytes of a record without key and value


def schema_of(columns: Sequence[str] | None) -> pa.Schema:
    """The schema of the chosen columns, in the order they were asked for."""
    if columns is None:
        return SCHEMA
    return pa.schema([SCHEMA.field(name) for name in columns])


def decode_columns(
    buffer: Bytes,
    *,
    position: int = 0,
    check_crc: bool = True,
    columns: Sequence[str] | None = None,
    on_error: OnError | None = None,
    limit: int = DEFAULT_LIMIT,
    scratch: Scratch | None = None,
) -> pa.RecordBatch:
    """All records of a buffer of whole batches as one Arrow record batch.

    `position` is where the buffer starts in its file. Without `on_error` the first damage raises;
    with it, damage is handed over and decoding goes on at the next batch.
    """
    run = prepare(
        buffer,
        position=position,
        check_crc=check_crc,
        on_error=on_error,
        limit=limit,
        scratch=scratch,
    )
    return columns_of(run, columns)


def columns_of(run: Run, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The records of a prepared run as columns. The result owns its memory."""
    return _filled(run, run.totals, schema_of(columns))


def _filled(run: Run, totals: array[int], schema: pa.Schema) -> pa.RecordBatch:
    arena = _Arena(totals)
    for name in schema.names:
        arena.plan(name)
    arena.allocate()
    state = array("q", bytes(8 * kernel.STATES))
    for source, first, last in run.groups:
        kernel.fill(source, run.table, first, last, *arena.views(), arena.bases, state)
    arena.fitted(state)
    return pa.RecordBatch.from_arrays([arena.array(name) for name in schema.names], schema=schema)


class Alike:
    """Columns of runs that are like the one before: then records need not be measured, which is a
    fifth of the work. Runs with headers always are."""

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self._schema = schema_of(columns)
        # Bytes of a key, and whether keys and values may be null; None: nothing can be told.
        self._known: tuple[float, bool, bool] | None = None

    @property
    def is_known(self) -> bool:
        return self._known is not None

    def learn(self, run: Run) -> None:
        totals = run.totals
        self._known = None
        if run.records and not totals[kernel.HEADERS]:
            nulls = totals[kernel.NULL_KEYS] > 0, totals[kernel.NULL_VALUES] > 0
            self._known = totals[kernel.KEY_BYTES] / run.records, *nulls

    def columns_of(self, run: Run) -> pa.RecordBatch | None:
        """None when the run is different after all, or damaged."""
        if (known := self._known) is None:  # another thread may know better by now
            return None
        records = size = 0
        for _, first, last in run.groups:
            rows = run.table[first * kernel.STRIDE : last * kernel.STRIDE]
            counts = rows[kernel.COUNT :: kernel.STRIDE]
            if min(counts) < 0:
                return None
            records += sum(counts)
            size += sum(rows[kernel.BODY_END :: kernel.STRIDE])
            size -= sum(rows[kernel.BODY :: kernel.STRIDE])
        values = size - _LEAST * records
        if records == 0 or values < 0:
            return None
        totals = array("q", bytes(8 * kernel.TOTALS))
        totals[kernel.RECORDS] = records
        totals[kernel.VALUE_BYTES] = values
        key_size, null_keys, null_values = known
        totals[kernel.KEY_BYTES] = min(values, int(key_size * records * 1.05) + 4096)
        # How many nulls there are is for pyarrow to count.
        totals[kernel.NULL_KEYS], totals[kernel.NULL_VALUES] = -null_keys, -null_values
        try:
            return _filled(run, totals, self._schema)
        except Corrupt:
            return None


class _Arena:
    """One piece of memory for all columns of a record batch; each starts on 64 bytes."""

    def __init__(self, totals: array[int]) -> None:
        self.totals = totals
        self.count = totals[kernel.RECORDS]
        self.bases = array("q", [-1] * kernel.BASES)
        self.bases[kernel.B_MOST_RECORDS] = self.count
        self.bases[kernel.B_MOST_HEADERS] = totals[kernel.HEADERS]
        self.zeroed: list[tuple[int, int]] = []
        self.size = 0
        self.buffer: pa.Buffer = pa.py_buffer(b"")

    def plan(self, name: str) -> None:
        totals = self.totals
        if name == "key":
            self._plan_bytes("KEY", self.count, totals[kernel.KEY_BYTES], totals[kernel.NULL_KEYS])
        elif name == "value":
            nulls = totals[kernel.NULL_VALUES]
            self._plan_bytes("VALUE", self.count, totals[kernel.VALUE_BYTES], nulls)
        elif name == "headers":
            headers = totals[kernel.HEADERS]
            self._take(kernel.B_HEADER_STARTS, 4 * (self.count + 1), first=True)
            self._plan_bytes("HEADER_KEY", headers, totals[kernel.HEADER_KEY_BYTES], 0)
            nulls = totals[kernel.NULL_HEADER_VALUES]
            self._plan_bytes("HEADER_VALUE", headers, totals[kernel.HEADER_VALUE_BYTES], nulls)
        else:
            place, width = _PLAIN[name]
            if width:
                self._take(place, width * self.count)
            else:
                self._take(place, (self.count + 7) // 8, zero=True)

    def _plan_bytes(self, name: str, count: int, size: int, nulls: int) -> None:
        if size > _MAX_BINARY:
            raise TooLarge(
                f"{size:,} bytes do not fit into one Arrow column",
                hint="decode fewer batches at a time",
            )
        self._take(getattr(kernel, f"B_{name}_STARTS"), 4 * (count + 1), first=True)
        self._take(getattr(kernel, f"B_{name}_DATA"), size)
        end = self.bases[getattr(kernel, f"B_{name}_DATA")] + size
        self.bases[getattr(kernel, f"B_{name}_DATA_END")] = end
        if nulls:
            self._take(getattr(kernel, f"B_{name}_VALID"), (count + 7) // 8, zero=True)

    def _take(self, place: int, size: int, *, zero: bool = False, first: bool = False) -> None:
        self.bases[place] = self.size
        if zero:
            self.zeroed.append((self.size, size))
        elif first:  # the kernel writes where each entry ends; the first starts at 0
            self.zeroed.append((self.size, 4))
        self.size += (size + 63) & ~63

    def allocate(self) -> None:
        self.buffer = pa.allocate_buffer(self.size)
        view = memoryview(self.buffer).cast("B")
        for start, size in self.zeroed:
            view[start : start + size] = bytes(size)

    def fitted(self, state: array[int]) -> None:
        """What is as long as it came to be."""
        for name in ("KEY", "VALUE"):
            start = self.bases[getattr(kernel, f"B_{name}_DATA")]
            self.bases[getattr(kernel, f"B_{name}_DATA_END")] = (
                start + state[getattr(kernel, f"S_{name}")]
            )

    def views(self) -> tuple[memoryview, memoryview, memoryview, memoryview]:
        view = memoryview(self.buffer).cast("B")
        return view, view.cast("h"), view.cast("i"), view.cast("q")

    def array(self, name: str) -> pa.Array:
        totals = self.totals
        if name in ("key", "value"):
            nulls = totals[kernel.NULL_KEYS if name == "key" else kernel.NULL_VALUES]
            return self._bytes(_KINDS[name], name.upper(), self.count, nulls)
        if name == "headers":
            count = totals[kernel.HEADERS]
            keys = self._bytes(pa.string(), "HEADER_KEY", count, 0)
            nulls = totals[kernel.NULL_HEADER_VALUES]
            values = self._bytes(pa.binary(), "HEADER_VALUE", count, nulls)
            entries = pa.StructArray.from_arrays([_readable(keys), values], fields=list(_HEADER))
            starts = self._slice(kernel.B_HEADER_STARTS, 4 * (self.count + 1))
            return pa.Array.from_buffers(_KINDS[name], self.count, [None, starts], 0, 0, [entries])
        place, width = _PLAIN[name]
        data = self._slice(place, width * self.count if width else (self.count + 7) // 8)
        return pa.Array.from_buffers(_KINDS[name], self.count, [None, data], 0)

    def _bytes(self, kind: pa.DataType, name: str, count: int, nulls: int) -> pa.Array:
        valid = None
        if nulls:
            valid = self._slice(getattr(kernel, f"B_{name}_VALID"), (count + 7) // 8)
        starts = self._slice(getattr(kernel, f"B_{name}_STARTS"), 4 * (count + 1))
        at = getattr(kernel, f"B_{name}_DATA")
        data = self._slice(at, self.bases[getattr(kernel, f"B_{name}_DATA_END")] - self.bases[at])
        return pa.Array.from_buffers(kind, count, [valid, starts, data], nulls)

    def _slice(self, place: int, size: int) -> pa.Buffer:
        return self.buffer.slice(self.bases[place], size)


def _readable(keys: pa.Array) -> pa.Array:
    """Header keys as text; bytes that are not UTF-8 become U+FFFD, as in Kafka."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = keys.view(pa.binary()).to_pylist()
        return pa.array([key.decode("utf-8", "replace") for key in raw], pa.string())
    return keys

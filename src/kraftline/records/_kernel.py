"""The hot loops: framing, checking and decoding of runs of v2 record batches.

Cython in pure-Python mode: compiled when there is a C compiler, otherwise the same file runs
interpreted; import it through `kernel.py`, never directly. One call handles a whole run of
batches. `scan` fills a table with one row of header fields per batch; the other functions take
rows of that table. Nothing here trusts a length: `measure` checks every record before anything
is allocated, and `fill` checks its bounds again, because the bytes may be a mapped file.
"""

from __future__ import annotations

try:
    import cython
except ImportError:

    class _Nothing:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def __call__(self, function):
            return function

    class cython:
        compiled = False
        nogil = _Nothing()
        cfunc = inline = staticmethod(_Nothing())
        longlong = int

        @staticmethod
        def declare(_, value):
            return value

        @staticmethod
        def exceptval(*_, **__):
            return _Nothing()


if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.kraftline.records._of_c import crc_by, unzstd_by
    from cython.cimports.libc.string import memcpy

from kraftline.errors import Corrupt

COMPILED = cython.compiled

# One row of the table, by column; 16 numbers each.
_POSITION = cython.declare(
    cython.longlong, 0
)  # in the file: where the buffer starts in the file, plus where the batch starts
_SIZE = cython.declare(cython.longlong, 1)
_MAGIC = cython.declare(cython.longlong, 2)
_ATTRIBUTES = cython.declare(cython.longlong, 3)
_COUNT = cython.declare(cython.longlong, 4)
_BASE_OFFSET = cython.declare(cython.longlong, 5)
_BASE_TIMESTAMP = cython.declare(cython.longlong, 6)
_MAX_TIMESTAMP = cython.declare(cython.longlong, 7)
_PRODUCER_ID = cython.declare(cython.longlong, 8)
_PRODUCER_EPOCH = cython.declare(cython.longlong, 9)
_BASE_SEQUENCE = cython.declare(cython.longlong, 10)
_LEADER_EPOCH = cython.declare(cython.longlong, 11)
_BODY = cython.declare(cython.longlong, 12)  # of the records, uncompressed, in their buffer
_BODY_END = cython.declare(cython.longlong, 13)
_LAST_OFFSET_DELTA = cython.declare(cython.longlong, 14)
_CRC = cython.declare(cython.longlong, 15)
_STRIDE = cython.declare(cython.longlong, 16)

# Why `scan` stopped.
_AT_END = cython.declare(cython.longlong, 0)
_TABLE_FULL = cython.declare(cython.longlong, 1)
_CUT = cython.declare(cython.longlong, 2)
_BAD_LENGTH = cython.declare(cython.longlong, 3)
_BAD_MAGIC = cython.declare(cython.longlong, 4)

# Bytes that `unpack` would rather copy than leave where they are.
_SMALL = cython.declare(cython.longlong, 4096)

# What `measure` counts.
_RECORDS = cython.declare(cython.longlong, 0)
_KEY_BYTES = cython.declare(cython.longlong, 1)
_NULL_KEYS = cython.declare(cython.longlong, 2)
_VALUE_BYTES = cython.declare(cython.longlong, 3)
_NULL_VALUES = cython.declare(cython.longlong, 4)
_HEADERS = cython.declare(cython.longlong, 5)
_HEADER_KEY_BYTES = cython.declare(cython.longlong, 6)
_HEADER_VALUE_BYTES = cython.declare(cython.longlong, 7)
_NULL_HEADER_VALUES = cython.declare(cython.longlong, 8)
_NOT_CONSECUTIVE = cython.declare(cython.longlong, 9)  # batches with gaps in their offsets
_OLDEST = cython.declare(cython.longlong, 10)  # of all timestamps of the call, as they were sent
_NEWEST = cython.declare(cython.longlong, 11)
_TOTALS = cython.declare(cython.longlong, 12)

# What `positions` gives per record.
_P_OFFSET = cython.declare(cython.longlong, 0)
_P_TIMESTAMP = cython.declare(cython.longlong, 1)
_P_KEY = cython.declare(cython.longlong, 2)
_P_KEY_END = cython.declare(cython.longlong, 3)  # -1: the key is null
_P_VALUE = cython.declare(cython.longlong, 4)
_P_VALUE_END = cython.declare(cython.longlong, 5)  # -1: the value is null
_P_HEADERS = cython.declare(cython.longlong, 6)  # where the headers' count stands
_P_ROW = cython.declare(cython.longlong, 7)
_P_STRIDE = cython.declare(cython.longlong, 8)

# Where `fill` puts what: byte positions in the arena, -1 for a column nobody asked for.
_B_OFFSET = cython.declare(cython.longlong, 0)
_B_TIMESTAMP = cython.declare(cython.longlong, 1)
_B_TIMESTAMP_TYPE = cython.declare(cython.longlong, 2)
_B_KEY_STARTS = cython.declare(cython.longlong, 3)
_B_KEY_DATA = cython.declare(cython.longlong, 4)
_B_KEY_VALID = cython.declare(cython.longlong, 5)
_B_VALUE_STARTS = cython.declare(cython.longlong, 6)
_B_VALUE_DATA = cython.declare(cython.longlong, 7)
_B_VALUE_VALID = cython.declare(cython.longlong, 8)
_B_HEADER_STARTS = cython.declare(cython.longlong, 9)
_B_HEADER_KEY_STARTS = cython.declare(cython.longlong, 10)
_B_HEADER_KEY_DATA = cython.declare(cython.longlong, 11)
_B_HEADER_VALUE_STARTS = cython.declare(cython.longlong, 12)
_B_HEADER_VALUE_DATA = cython.declare(cython.longlong, 13)
_B_HEADER_VALUE_VALID = cython.declare(cython.longlong, 14)
_B_EPOCH = cython.declare(cython.longlong, 15)
_B_PRODUCER = cython.declare(cython.longlong, 16)
_B_PRODUCER_EPOCH = cython.declare(cython.longlong, 17)
_B_SEQUENCE = cython.declare(cython.longlong, 18)
_B_CODEC = cython.declare(cython.longlong, 19)
_B_TRANSACTIONAL = cython.declare(cython.longlong, 20)
_B_CONTROL = cython.declare(cython.longlong, 21)
_B_POSITION = cython.declare(cython.longlong, 22)
_B_KEY_DATA_END = cython.declare(cython.longlong, 23)
_B_VALUE_DATA_END = cython.declare(cython.longlong, 24)
_B_HEADER_KEY_DATA_END = cython.declare(cython.longlong, 25)
_B_HEADER_VALUE_DATA_END = cython.declare(cython.longlong, 26)
_B_MOST_RECORDS = cython.declare(cython.longlong, 27)
_B_MOST_HEADERS = cython.declare(cython.longlong, 28)
_BASES = cython.declare(cython.longlong, 29)

# How far `fill` has come, from one call to the next.
_S_RECORD = cython.declare(cython.longlong, 0)
_S_KEY = cython.declare(cython.longlong, 1)
_S_VALUE = cython.declare(cython.longlong, 2)
_S_HEADER = cython.declare(cython.longlong, 3)
_S_HEADER_KEY = cython.declare(cython.longlong, 4)
_S_HEADER_VALUE = cython.declare(cython.longlong, 5)
_STATES = cython.declare(cython.longlong, 6)

# The same numbers for callers: C constants cannot be seen from Python.
POSITION = _POSITION
SIZE = _SIZE
MAGIC = _MAGIC
ATTRIBUTES = _ATTRIBUTES
COUNT = _COUNT
BASE_OFFSET = _BASE_OFFSET
BASE_TIMESTAMP = _BASE_TIMESTAMP
MAX_TIMESTAMP = _MAX_TIMESTAMP
PRODUCER_ID = _PRODUCER_ID
PRODUCER_EPOCH = _PRODUCER_EPOCH
BASE_SEQUENCE = _BASE_SEQUENCE
LEADER_EPOCH = _LEADER_EPOCH
BODY = _BODY
BODY_END = _BODY_END
LAST_OFFSET_DELTA = _LAST_OFFSET_DELTA
CRC = _CRC
STRIDE = _STRIDE
AT_END = _AT_END
TABLE_FULL = _TABLE_FULL
CUT = _CUT
BAD_LENGTH = _BAD_LENGTH
BAD_MAGIC = _BAD_MAGIC
RECORDS = _RECORDS
KEY_BYTES = _KEY_BYTES
NULL_KEYS = _NULL_KEYS
VALUE_BYTES = _VALUE_BYTES
NULL_VALUES = _NULL_VALUES
HEADERS = _HEADERS
HEADER_KEY_BYTES = _HEADER_KEY_BYTES
HEADER_VALUE_BYTES = _HEADER_VALUE_BYTES
NULL_HEADER_VALUES = _NULL_HEADER_VALUES
NOT_CONSECUTIVE = _NOT_CONSECUTIVE
OLDEST = _OLDEST
NEWEST = _NEWEST
TOTALS = _TOTALS
P_OFFSET = _P_OFFSET
P_TIMESTAMP = _P_TIMESTAMP
P_KEY = _P_KEY
P_KEY_END = _P_KEY_END
P_VALUE = _P_VALUE
P_VALUE_END = _P_VALUE_END
P_HEADERS = _P_HEADERS
P_ROW = _P_ROW
P_STRIDE = _P_STRIDE
B_OFFSET = _B_OFFSET
B_TIMESTAMP = _B_TIMESTAMP
B_TIMESTAMP_TYPE = _B_TIMESTAMP_TYPE
B_KEY_STARTS = _B_KEY_STARTS
B_KEY_DATA = _B_KEY_DATA
B_KEY_VALID = _B_KEY_VALID
B_VALUE_STARTS = _B_VALUE_STARTS
B_VALUE_DATA = _B_VALUE_DATA
B_VALUE_VALID = _B_VALUE_VALID
B_HEADER_STARTS = _B_HEADER_STARTS
B_HEADER_KEY_STARTS = _B_HEADER_KEY_STARTS
B_HEADER_KEY_DATA = _B_HEADER_KEY_DATA
B_HEADER_VALUE_STARTS = _B_HEADER_VALUE_STARTS
B_HEADER_VALUE_DATA = _B_HEADER_VALUE_DATA
B_HEADER_VALUE_VALID = _B_HEADER_VALUE_VALID
B_EPOCH = _B_EPOCH
B_PRODUCER = _B_PRODUCER
B_PRODUCER_EPOCH = _B_PRODUCER_EPOCH
B_SEQUENCE = _B_SEQUENCE
B_CODEC = _B_CODEC
B_TRANSACTIONAL = _B_TRANSACTIONAL
B_CONTROL = _B_CONTROL
B_POSITION = _B_POSITION
B_KEY_DATA_END = _B_KEY_DATA_END
B_VALUE_DATA_END = _B_VALUE_DATA_END
B_HEADER_KEY_DATA_END = _B_HEADER_KEY_DATA_END
B_HEADER_VALUE_DATA_END = _B_HEADER_VALUE_DATA_END
B_MOST_RECORDS = _B_MOST_RECORDS
B_MOST_HEADERS = _B_MOST_HEADERS
BASES = _BASES
S_KEY = _S_KEY
S_VALUE = _S_VALUE
STATES = _STATES

_REASONS = (
    "",
    "a negative count of records",
    "a count of more records than fit into the batch",
    "bytes left over after the last record",
    "the length of a record is cut or overlong",
    "a record runs past the end of the batch",
    "a record is cut in its timestamp",
    "a record's timestamp overflows",
    "a record is cut in its offset",
    "a record's offset is outside its batch",
    "a record is cut in its key",
    "a record is cut in its value",
    "a record is cut in its headers",
    "a negative count of headers",
    "a header key has a negative length",
    "the length of a record does not match its fields",
    "the base offset of the batch is out of range",
    "the batch changed while it was read",
)


def _refuse(code: int, row: int, record: int, position: int, offset: int):
    where = f"record {record} of the batch: " if 4 <= code <= 15 else ""
    raise Corrupt(where + _REASONS[code], position=position, offset=offset)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _i32(buf: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.longlong:
    value: cython.longlong
    if cython.compiled:
        value = buf[at]
        if value >= 128:
            value -= 256
        value = value * 256 + buf[at + 1]
        value = value * 256 + buf[at + 2]
        return value * 256 + buf[at + 3]
    return int.from_bytes(buf[at : at + 4], "big", signed=True)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _i64(buf: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.longlong:
    low: cython.longlong
    high: cython.longlong
    if cython.compiled:
        high = _i32(buf, at)
        low = buf[at + 4]
        low = low * 256 + buf[at + 5]
        low = low * 256 + buf[at + 6]
        low = low * 256 + buf[at + 7]
        return high * 65536 * 65536 + low
    return int.from_bytes(buf[at : at + 8], "big", signed=True)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varlen(
    buf: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    most: cython.longlong,
) -> cython.longlong:
    """Bytes of the varint at `at`; 0 when it is cut or longer than `most`."""
    n: cython.longlong = 1
    while at < end and n <= most:
        if buf[at] < 128:
            return n
        at += 1
        n += 1
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varnum(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, n: cython.longlong
) -> cython.longlong:
    """The zig-zag number in the `n` bytes at `at`.

    It is put together without its sign bit, so that it never leaves 63 bits; surplus bits of a
    tenth byte fall away, as they do in Java.
    """
    value: cython.longlong = buf[at]
    sign: cython.longlong = value & 1
    part: cython.longlong
    shift: cython.longlong = 6
    i: cython.longlong
    value = (value & 127) >> 1
    for i in range(at + 1, at + n):
        part = buf[i] & 127
        if shift > 61:
            part &= 1
        value |= part << shift
        shift += 7
    return value ^ -sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _narrow(value: cython.longlong) -> cython.longlong:
    """What Java keeps of a five-byte varint: 32 bits."""
    if value >= 0:
        return value & 0x7FFFFFFF
    return -((-1 - value) & 0x7FFFFFFF) - 1


def scan(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    end: cython.longlong,
    base: cython.longlong,
    table: cython.longlong[::1],
):
    """Walk the framing from `start`; returns (rows, where it stopped, why it stopped).

    `base` is the file position of the buffer's first byte. A row is written only for a batch
    that is there in full and large enough for its header.
    """
    rows: cython.longlong = table.shape[0] // _STRIDE if cython.compiled else len(table) // _STRIDE
    n: cython.longlong = 0
    pos: cython.longlong = start
    size: cython.longlong
    magic: cython.longlong
    attributes: cython.longlong
    t: cython.longlong
    why: cython.longlong = _AT_END
    with cython.nogil:
        while pos < end:
            if n == rows:
                why = _TABLE_FULL
                break
            if end - pos < 12:
                why = _CUT
                break
            size = _i32(buf, pos + 8)
            if size < 14:
                why = _BAD_LENGTH
                break
            if end - pos < 17:
                why = _CUT
                break
            magic = buf[pos + 16]
            if magic > 2:
                why = _BAD_MAGIC
                break
            if (magic == 2 and size < 49) or (magic == 1 and size < 22):
                why = _BAD_LENGTH
                break
            size += 12
            if size > end - pos:
                why = _CUT
                break
            t = n * _STRIDE
            table[t + _POSITION] = base + pos
            table[t + _SIZE] = size
            table[t + _MAGIC] = magic
            table[t + _BASE_OFFSET] = _i64(buf, pos)
            table[t + _BODY_END] = pos + size
            if magic == 2:
                attributes = buf[pos + 22]  # Kafka looks at the low byte only
                table[t + _ATTRIBUTES] = attributes
                table[t + _LEADER_EPOCH] = _i32(buf, pos + 12)
                table[t + _CRC] = _i32(buf, pos + 17)
                table[t + _LAST_OFFSET_DELTA] = _i32(buf, pos + 23)
                table[t + _BASE_TIMESTAMP] = _i64(buf, pos + 27)
                table[t + _MAX_TIMESTAMP] = _i64(buf, pos + 35)
                table[t + _PRODUCER_ID] = _i64(buf, pos + 43)
                table[t + _PRODUCER_EPOCH] = _i32(buf, pos + 51) >> 16
                table[t + _BASE_SEQUENCE] = _i32(buf, pos + 53)
                table[t + _COUNT] = _i32(buf, pos + 57)
                table[t + _BODY] = pos + 61
            else:
                attributes = buf[pos + 17]
                table[t + _ATTRIBUTES] = attributes
                table[t + _LEADER_EPOCH] = -1
                table[t + _CRC] = _i32(buf, pos + 12)
                table[t + _LAST_OFFSET_DELTA] = 0
                table[t + _BASE_TIMESTAMP] = _i64(buf, pos + 18) if magic == 1 else -1
                table[t + _MAX_TIMESTAMP] = table[t + _BASE_TIMESTAMP]
                table[t + _PRODUCER_ID] = -1
                table[t + _PRODUCER_EPOCH] = -1
                table[t + _BASE_SEQUENCE] = -1
                table[t + _COUNT] = -1
                table[t + _BODY] = pos + 26 if magic == 1 else pos + 18
            n += 1
            pos += size
    return n, pos, why


def seek(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    end: cython.longlong,
    offset: cython.longlong,
):
    """(where the first batch stands that ends at or after an offset, its size), by headers alone.

    Where it is not in sight, (where the next header would stand, 0); a header that cannot be
    gives its place and -1.
    """
    pos: cython.longlong = start
    size: cython.longlong = 0
    last: cython.longlong
    with cython.nogil:
        while end - pos >= 27:
            size = _i32(buf, pos + 8) + 12
            if size < 26:
                size = -1
                break
            last = _i64(buf, pos)
            if buf[pos + 16] == 2:
                last += _i32(buf, pos + 23)
            if last >= offset:
                break
            pos += size
            size = 0
        else:
            size = 0
    return pos, size


def are_plain(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    rows: cython.longlong,
    position: cython.longlong,
    function: cython.longlong,
) -> bool:
    """Whether all batches are v2, uncompressed and, by the function of C at this address, sound.
    Compiled only."""
    row: cython.longlong
    t: cython.longlong
    start: cython.longlong
    crc: cython.uint
    ok: cython.longlong = 1
    with cython.nogil:
        for row in range(rows):
            t = row * _STRIDE
            if table[t + _MAGIC] != 2 or table[t + _ATTRIBUTES] & 7 != 0:
                ok = 0
                break
            if function != 0:
                start = table[t + _POSITION] - position + 21
                crc = crc_by(function, cython.address(buf[start]), table[t + _SIZE] - 21)
                if crc != cython.cast(cython.uint, table[t + _CRC]):
                    ok = 0
                    break
    return ok == 1


def unpack(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    first: cython.longlong,
    rows: cython.longlong,
    position: cython.longlong,
    out: cython.uchar[::1],
    used: cython.longlong,
    enough: cython.longlong,
    limit: cython.longlong,
    crc_function: cython.longlong,
    zstd_function: cython.longlong,
    context: cython.longlong,
) -> tuple[int, int]:
    """Put the records of batches from row `first` on into `out` behind its first `used` bytes,
    until `enough` are there: (the first row that is not done, bytes used). Compiled only.

    It takes v2 batches of zstd, and small ones that are not compressed (markers of transactions
    between the others); at any other, at an unsound one and at one for which there is no room it
    stops, and says no more: the caller looks closer.
    """
    row: cython.longlong = first
    t: cython.longlong
    start: cython.longlong
    size: cython.longlong
    room: cython.longlong
    codec: cython.longlong
    written: cython.longlong
    with cython.nogil:
        while row < rows and used < enough:
            t = row * _STRIDE
            start = table[t + _POSITION] - position
            size = table[t + _SIZE]
            codec = table[t + _ATTRIBUTES] & 7
            if table[t + _MAGIC] != 2 or (codec != 0 and codec != 4):
                break
            if crc_function != 0 and crc_by(
                crc_function, cython.address(buf[start + 21]), size - 21
            ) != cython.cast(cython.uint, table[t + _CRC]):
                break
            start += 61
            size -= 61
            room = min(out.shape[0] - used, limit)
            if codec == 0 or table[t + _COUNT] == 0:
                if size > min(room, _SMALL):
                    break
                if size > 0:
                    memcpy(cython.address(out[used]), cython.address(buf[start]), size)
                written = size
            else:
                if room <= 0 or size <= 0:
                    break
                written = unzstd_by(
                    zstd_function,
                    context,
                    cython.address(out[used]),
                    room,
                    cython.address(buf[start]),
                    size,
                )
                if written < 0:
                    break
            table[t + _BODY] = used
            used += written
            table[t + _BODY_END] = used
            row += 1
    return row, used


def measure(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
    totals: cython.longlong[::1],
):
    """Check every record of rows first..last-1 and add up what decoding them will need.

    OLDEST and NEWEST are not sums but of this call alone, and of CreateTime; without such
    records they are not set.
    """
    row: cython.longlong
    t: cython.longlong = 0
    pos: cython.longlong
    end: cython.longlong
    stop: cython.longlong
    count: cython.longlong
    i: cython.longlong = 0
    j: cython.longlong
    n: cython.longlong
    b: cython.longlong
    size: cython.longlong
    number: cython.longlong
    base_timestamp: cython.longlong
    last_delta: cython.longlong
    append_time: cython.longlong
    code: cython.longlong = 0
    bad_row: cython.longlong = 0
    bad_record: cython.longlong = 0
    records: cython.longlong = 0
    key_bytes: cython.longlong = 0
    null_keys: cython.longlong = 0
    value_bytes: cython.longlong = 0
    null_values: cython.longlong = 0
    headers: cython.longlong = 0
    header_key_bytes: cython.longlong = 0
    header_value_bytes: cython.longlong = 0
    null_header_values: cython.longlong = 0
    gaps: cython.longlong
    not_consecutive: cython.longlong = 0
    least_delta: cython.longlong
    most_delta: cython.longlong
    oldest: cython.longlong = 0
    newest: cython.longlong = 0
    timed: cython.longlong = 0
    most: cython.longlong = 0x7FFFFFFF
    far: cython.longlong
    most = most * 65536 * 65536 + most * 2 + 1  # 2**63 - 1, without a literal of that size
    far = most - 0x7FFFFFFF
    with cython.nogil:
        for row in range(first, last):
            t = row * _STRIDE
            bad_row = row
            bad_record = 0
            pos = table[t + _BODY]
            end = table[t + _BODY_END]
            count = table[t + _COUNT]
            base_timestamp = table[t + _BASE_TIMESTAMP]
            last_delta = table[t + _LAST_OFFSET_DELTA]
            append_time = table[t + _ATTRIBUTES] & 8
            gaps = 0
            least_delta = most
            most_delta = -most - 1
            if count < 0:
                code = 1
                break
            if count * 7 > end - pos:
                code = 2
                break
            if table[t + _BASE_OFFSET] < 0 or table[t + _BASE_OFFSET] > far:
                code = 16
                break
            for i in range(count):
                # the length
                b = buf[pos] if pos < end else 255
                if b < 128:
                    size = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, end, 5)
                    if n == 0:
                        code = 4
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                if size < 0 or size > end - pos:
                    code = 5
                    break
                stop = pos + size
                pos += 1  # attributes: none are in use
                # the timestamp
                b = buf[pos] if pos < stop else 255
                if b < 128:
                    number = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 10)
                    if n == 0:
                        code = 6
                        break
                    number = _varnum(buf, pos, n)
                    pos += n
                if number < least_delta:
                    least_delta = number
                if number > most_delta:
                    most_delta = number
                if append_time == 0:
                    if number >= 0:
                        if base_timestamp > most - number:
                            code = 7
                            break
                    elif base_timestamp < -most - 1 - number:
                        code = 7
                        break
                # the offset
                b = buf[pos] if pos < stop else 255
                if b < 128:
                    number = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        code = 8
                        break
                    number = _narrow(_varnum(buf, pos, n))
                    pos += n
                if number < 0 or number > last_delta:
                    code = 9
                    break
                gaps |= number ^ i
                # the key
                b = buf[pos] if pos < stop else 255
                if b < 128:
                    size = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        code = 10
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                if size < 0:
                    null_keys += 1
                elif size > stop - pos:
                    code = 10
                    break
                else:
                    key_bytes += size
                    pos += size
                # the value
                b = buf[pos] if pos < stop else 255
                if b < 128:
                    size = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        code = 11
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                if size < 0:
                    null_values += 1
                elif size > stop - pos:
                    code = 11
                    break
                else:
                    value_bytes += size
                    pos += size
                # the headers
                n = _varlen(buf, pos, stop, 5)
                if n == 0:
                    code = 12
                    break
                number = _narrow(_varnum(buf, pos, n))
                pos += n
                if number < 0:
                    code = 13
                    break
                if number > stop - pos:
                    code = 12
                    break
                headers += number
                for j in range(number):
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        code = 12
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                    if size < 0:
                        code = 14
                        break
                    if size > stop - pos:
                        code = 12
                        break
                    header_key_bytes += size
                    pos += size
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        code = 12
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                    if size < 0:
                        null_header_values += 1
                    elif size > stop - pos:
                        code = 12
                        break
                    else:
                        header_value_bytes += size
                        pos += size
                if code != 0:
                    break
                if pos != stop:
                    code = 15
                    break
            if code != 0:
                bad_record = i
                break
            if pos != end:
                code = 3
                break
            if count > 0 and append_time == 0:
                if timed == 0 or base_timestamp + least_delta < oldest:
                    oldest = base_timestamp + least_delta
                if timed == 0 or base_timestamp + most_delta > newest:
                    newest = base_timestamp + most_delta
                timed = 1
            records += count
            if gaps != 0:
                not_consecutive += 1
    if code != 0:
        t = bad_row * _STRIDE
        _refuse(code, bad_row, bad_record, table[t + _POSITION], table[t + _BASE_OFFSET])
    totals[_RECORDS] += records
    totals[_KEY_BYTES] += key_bytes
    totals[_NULL_KEYS] += null_keys
    totals[_VALUE_BYTES] += value_bytes
    totals[_NULL_VALUES] += null_values
    totals[_HEADERS] += headers
    totals[_HEADER_KEY_BYTES] += header_key_bytes
    totals[_HEADER_VALUE_BYTES] += header_value_bytes
    totals[_NULL_HEADER_VALUES] += null_header_values
    totals[_NOT_CONSECUTIVE] += not_consecutive
    if timed != 0:
        totals[_OLDEST] = oldest
        totals[_NEWEST] = newest


@cython.cfunc
@cython.inline
def _cut(buf: cython.const[cython.uchar][::1], at: cython.longlong, size: cython.longlong) -> bytes:
    if size == 0:
        return b""
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(buf[at])), size)
    return bytes(buf[at : at + size])


def headers_at(buf: cython.const[cython.uchar][::1], at: cython.longlong, stop: cython.longlong):
    """The headers whose count stands at `at`, of a record that `measure` has passed."""
    pos: cython.longlong = at
    n: cython.longlong = _varlen(buf, pos, stop, 5)
    number: cython.longlong
    size: cython.longlong
    j: cython.longlong
    found: list = []
    if n == 0:
        _refuse(17, 0, 0, at, -1)
    number = _narrow(_varnum(buf, pos, n))
    pos += n
    for j in range(number):
        n = _varlen(buf, pos, stop, 5)
        size = _narrow(_varnum(buf, pos, n)) if n > 0 else -1
        pos += n
        if size < 0 or size > stop - pos:
            _refuse(17, 0, 0, at, -1)
        key: str = _cut(buf, pos, size).decode("utf-8", "replace")
        pos += size
        n = _varlen(buf, pos, stop, 5)
        if n == 0:
            _refuse(17, 0, 0, at, -1)
        size = _narrow(_varnum(buf, pos, n))
        pos += n
        if size < 0:
            found.append((key, None))
        elif size > stop - pos:
            _refuse(17, 0, 0, at, -1)
        else:
            found.append((key, _cut(buf, pos, size)))
            pos += size
    return tuple(found)


def tuples(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
):
    """(offset, timestamp, key, value, headers, sequence) of each record that `measure` passed."""
    row: cython.longlong
    t: cython.longlong
    pos: cython.longlong
    end: cython.longlong
    stop: cython.longlong
    i: cython.longlong
    n: cython.longlong
    b: cython.longlong
    size: cython.longlong
    timestamp: cython.longlong
    offset: cython.longlong
    sequence: cython.longlong
    base_sequence: cython.longlong
    append_time: cython.longlong
    out: list = []
    for row in range(first, last):
        t = row * _STRIDE
        pos = table[t + _BODY]
        end = table[t + _BODY_END]
        base_sequence = table[t + _BASE_SEQUENCE]
        append_time = table[t + _ATTRIBUTES] & 8
        for i in range(table[t + _COUNT]):
            n = _varlen(buf, pos, end, 5)
            size = _narrow(_varnum(buf, pos, n)) if n > 0 else -1
            pos += n
            if size < 6 or size > end - pos:
                _refuse(17, row, i, table[t + _POSITION], table[t + _BASE_OFFSET])
            stop = pos + size
            pos += 1
            n = _varlen(buf, pos, stop, 10)
            if n == 0:
                _refuse(17, row, i, table[t + _POSITION], table[t + _BASE_OFFSET])
            timestamp = table[t + _BASE_TIMESTAMP] + _varnum(buf, pos, n)
            if append_time != 0:
                timestamp = table[t + _MAX_TIMESTAMP]
            pos += n
            n = _varlen(buf, pos, stop, 5)
            if n == 0:
                _refuse(17, row, i, table[t + _POSITION], table[t + _BASE_OFFSET])
            offset = _narrow(_varnum(buf, pos, n))
            pos += n
            sequence = -1
            if base_sequence >= 0:
                sequence = base_sequence + offset
                if sequence > 0x7FFFFFFF:
                    sequence = sequence - 0x7FFFFFFF - 1
            offset += table[t + _BASE_OFFSET]
            # key
            n = _varlen(buf, pos, stop, 5)
            size = _narrow(_varnum(buf, pos, n)) if n > 0 else 0
            pos += n
            if n == 0 or size > stop - pos:
                _refuse(17, row, i, table[t + _POSITION], table[t + _BASE_OFFSET])
            key: object = None
            if size >= 0:
                key = _cut(buf, pos, size)
                pos += size
            # value
            n = _varlen(buf, pos, stop, 5)
            size = _narrow(_varnum(buf, pos, n)) if n > 0 else 0
            pos += n
            if n == 0 or size > stop - pos:
                _refuse(17, row, i, table[t + _POSITION], table[t + _BASE_OFFSET])
            value: object = None
            if size >= 0:
                value = _cut(buf, pos, size)
                pos += size
            b = buf[pos] if pos < stop else 0
            if b == 0:
                out.append((offset, timestamp, key, value, (), sequence))
            else:
                headers: object = headers_at(buf, pos, stop)
                out.append((offset, timestamp, key, value, headers, sequence))
            pos = stop
    return out


def positions(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
    out: cython.longlong[::1],
):
    """Where the parts of each record stand in `buf`: rows of P_STRIDE numbers into `out`."""
    row: cython.longlong
    t: cython.longlong
    pos: cython.longlong
    end: cython.longlong
    stop: cython.longlong
    i: cython.longlong
    n: cython.longlong
    size: cython.longlong
    at: cython.longlong = 0
    most: cython.longlong = out.shape[0] if cython.compiled else len(out)
    append_time: cython.longlong
    changed: cython.longlong = 0
    with cython.nogil:
        for row in range(first, last):
            t = row * _STRIDE
            pos = table[t + _BODY]
            end = table[t + _BODY_END]
            append_time = table[t + _ATTRIBUTES] & 8
            for i in range(table[t + _COUNT]):
                changed = 1
                n = _varlen(buf, pos, end, 5)
                if n == 0 or at + _P_STRIDE > most:
                    break
                size = _narrow(_varnum(buf, pos, n))
                pos += n
                if size < 6 or size > end - pos:
                    break
                stop = pos + size
                pos += 1
                n = _varlen(buf, pos, stop, 10)
                if n == 0:
                    break
                out[at + _P_TIMESTAMP] = table[t + _BASE_TIMESTAMP] + _varnum(buf, pos, n)
                if append_time != 0:
                    out[at + _P_TIMESTAMP] = table[t + _MAX_TIMESTAMP]
                pos += n
                n = _varlen(buf, pos, stop, 5)
                if n == 0:
                    break
                out[at + _P_OFFSET] = table[t + _BASE_OFFSET] + _narrow(_varnum(buf, pos, n))
                pos += n
                n = _varlen(buf, pos, stop, 5)
                if n == 0:
                    break
                size = _narrow(_varnum(buf, pos, n))
                pos += n
                if size > stop - pos:
                    break
                out[at + _P_KEY] = pos
                out[at + _P_KEY_END] = -1
                if size >= 0:
                    pos += size
                    out[at + _P_KEY_END] = pos
                n = _varlen(buf, pos, stop, 5)
                if n == 0:
                    break
                size = _narrow(_varnum(buf, pos, n))
                pos += n
                if size > stop - pos:
                    break
                out[at + _P_VALUE] = pos
                out[at + _P_VALUE_END] = -1
                if size >= 0:
                    pos += size
                    out[at + _P_VALUE_END] = pos
                out[at + _P_HEADERS] = pos
                out[at + _P_ROW] = row
                at += _P_STRIDE
                pos = stop
                changed = 0
            if changed != 0:
                break
    if changed != 0:
        t = row * _STRIDE
        _refuse(17, row, i, table[t + _POSITION], table[t + _BASE_OFFSET])
    return at // _P_STRIDE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    out: cython.uchar[::1],
    to: cython.longlong,
    buf: cython.const[cython.uchar][::1],
    at: cython.longlong,
    size: cython.longlong,
) -> cython.void:
    if size > 0:
        if cython.compiled:
            memcpy(cython.address(out[to]), cython.address(buf[at]), size)
        else:
            out[to : to + size] = buf[at : at + size]


def fill(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
    out: cython.uchar[::1],
    out16: cython.short[::1],
    out32: cython.int[::1],
    out64: cython.longlong[::1],
    bases: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """Write the columns of rows first..last-1 into the arena `out`, which is zeroed where it
    holds bits. `out16`, `out32` and `out64` are the same memory in wider numbers.

    The rows need not be measured, but what `measure` would refuse or the arena has no room for
    is refused without saying why.
    """
    row: cython.longlong = 0
    t: cython.longlong
    pos: cython.longlong
    end: cython.longlong
    stop: cython.longlong
    i: cython.longlong = 0
    j: cython.longlong
    k: cython.longlong
    n: cython.longlong
    b: cython.longlong
    size: cython.longlong
    number: cython.longlong
    count: cython.longlong
    begin: cython.longlong
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    max_timestamp: cython.longlong
    last_delta: cython.longlong
    base_sequence: cython.longlong
    attributes: cython.longlong
    ok: cython.longlong = 1
    record: cython.longlong = state[_S_RECORD]
    key_at: cython.longlong = state[_S_KEY]
    value_at: cython.longlong = state[_S_VALUE]
    header: cython.longlong = state[_S_HEADER]
    header_key_at: cython.longlong = state[_S_HEADER_KEY]
    header_value_at: cython.longlong = state[_S_HEADER_VALUE]
    offsets: cython.longlong = bases[_B_OFFSET] >> 3
    timestamps: cython.longlong = bases[_B_TIMESTAMP] >> 3
    types: cython.longlong = bases[_B_TIMESTAMP_TYPE]
    key_starts: cython.longlong = bases[_B_KEY_STARTS] >> 2
    key_data: cython.longlong = bases[_B_KEY_DATA]
    key_valid: cython.longlong = bases[_B_KEY_VALID]
    key_room: cython.longlong = bases[_B_KEY_DATA_END] - key_data
    value_starts: cython.longlong = bases[_B_VALUE_STARTS] >> 2
    value_data: cython.longlong = bases[_B_VALUE_DATA]
    value_valid: cython.longlong = bases[_B_VALUE_VALID]
    value_room: cython.longlong = bases[_B_VALUE_DATA_END] - value_data
    header_starts: cython.longlong = bases[_B_HEADER_STARTS] >> 2
    header_key_starts: cython.longlong = bases[_B_HEADER_KEY_STARTS] >> 2
    header_key_data: cython.longlong = bases[_B_HEADER_KEY_DATA]
    header_key_room: cython.longlong = bases[_B_HEADER_KEY_DATA_END] - header_key_data
    header_value_starts: cython.longlong = bases[_B_HEADER_VALUE_STARTS] >> 2
    header_value_data: cython.longlong = bases[_B_HEADER_VALUE_DATA]
    header_value_valid: cython.longlong = bases[_B_HEADER_VALUE_VALID]
    header_value_room: cython.longlong = bases[_B_HEADER_VALUE_DATA_END] - header_value_data
    epochs: cython.longlong = bases[_B_EPOCH] >> 2
    producers: cython.longlong = bases[_B_PRODUCER] >> 3
    producer_epochs: cython.longlong = bases[_B_PRODUCER_EPOCH] >> 1
    sequences: cython.longlong = bases[_B_SEQUENCE] >> 2
    codecs: cython.longlong = bases[_B_CODEC]
    transactional: cython.longlong = bases[_B_TRANSACTIONAL]
    control: cython.longlong = bases[_B_CONTROL]
    places: cython.longlong = bases[_B_POSITION] >> 3
    most_records: cython.longlong = bases[_B_MOST_RECORDS]
    most_headers: cython.longlong = bases[_B_MOST_HEADERS]
    most: cython.longlong = 0x7FFFFFFF
    far: cython.longlong
    most = most * 65536 * 65536 + most * 2 + 1  # 2**63 - 1, without a literal of that size
    far = most - 0x7FFFFFFF
    with cython.nogil:
        for row in range(first, last):
            t = row * _STRIDE
            pos = table[t + _BODY]
            end = table[t + _BODY_END]
            count = table[t + _COUNT]
            attributes = table[t + _ATTRIBUTES]
            base_offset = table[t + _BASE_OFFSET]
            base_timestamp = table[t + _BASE_TIMESTAMP]
            max_timestamp = table[t + _MAX_TIMESTAMP]
            last_delta = table[t + _LAST_OFFSET_DELTA]
            base_sequence = table[t + _BASE_SEQUENCE]
            begin = record
            if count < 0 or count > most_records - record or base_offset < 0 or base_offset > far:
                ok = 0
                break
            for i in range(count):
                ok = 0
                # the length
                b = buf[pos] if pos < end else 255
                if b < 128:
                    size = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, end, 5)
                    if n == 0:
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                if size < 6 or size > end - pos:
                    break
                stop = pos + size
                pos += 1
                # the timestamp
                b = buf[pos]
                if b < 128:
                    number = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 10)
                    if n == 0:
                        break
                    number = _varnum(buf, pos, n)
                    pos += n
                if attributes & 8 != 0:
                    number = max_timestamp
                elif number >= 0:
                    if base_timestamp > most - number:
                        break
                    number += base_timestamp
                else:
                    if base_timestamp < -most - 1 - number:
                        break
                    number += base_timestamp
                if timestamps >= 0:
                    out64[timestamps + record] = number
                # the offset
                b = buf[pos] if pos < stop else 255
                if b < 128:
                    number = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        break
                    number = _narrow(_varnum(buf, pos, n))
                    pos += n
                if number < 0 or number > last_delta:
                    break
                if offsets >= 0:
                    out64[offsets + record] = base_offset + number
                if sequences >= 0:
                    if base_sequence < 0:
                        number = -1
                    else:
                        number += base_sequence
                        if number > 0x7FFFFFFF:
                            number = number - 0x7FFFFFFF - 1
                    out32[sequences + record] = number
                # the key
                b = buf[pos] if pos < stop else 255
                if b < 128:
                    size = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                if size > stop - pos:
                    break
                if size >= 0:
                    if key_starts >= 0:
                        if size > key_room - key_at:
                            break
                        _copy(out, key_data + key_at, buf, pos, size)
                        key_at += size
                        if key_valid >= 0:
                            out[key_valid + (record >> 3)] |= 1 << (record & 7)
                    pos += size
                elif key_starts >= 0 and key_valid < 0:
                    break
                if key_starts >= 0:
                    out32[key_starts + record + 1] = key_at
                # the value
                b = buf[pos] if pos < stop else 255
                if b < 128:
                    size = (b >> 1) ^ -(b & 1)
                    pos += 1
                else:
                    n = _varlen(buf, pos, stop, 5)
                    if n == 0:
                        break
                    size = _narrow(_varnum(buf, pos, n))
                    pos += n
                if size > stop - pos:
                    break
                if size >= 0:
                    if value_starts >= 0:
                        if size > value_room - value_at:
                            break
                        _copy(out, value_data + value_at, buf, pos, size)
                        value_at += size
                        if value_valid >= 0:
                            out[value_valid + (record >> 3)] |= 1 << (record & 7)
                    pos += size
                elif value_starts >= 0 and value_valid < 0:
                    break
                if value_starts >= 0:
                    out32[value_starts + record + 1] = value_at
                # the headers
                n = _varlen(buf, pos, stop, 5)
                if n == 0:
                    break
                number = _narrow(_varnum(buf, pos, n))
                pos += n
                if number < 0 or number > most_headers - header:
                    break
                if header_starts >= 0:
                    k = 0
                    for j in range(number):
                        n = _varlen(buf, pos, stop, 5)
                        if n == 0:
                            break
                        size = _narrow(_varnum(buf, pos, n))
                        pos += n
                        if size < 0 or size > stop - pos or size > header_key_room - header_key_at:
                            break
                        _copy(out, header_key_data + header_key_at, buf, pos, size)
                        header_key_at += size
                        pos += size
                        n = _varlen(buf, pos, stop, 5)
                        if n == 0:
                            break
                        size = _narrow(_varnum(buf, pos, n))
                        pos += n
                        if size > stop - pos or size > header_value_room - header_value_at:
                            break
                        if size >= 0:
                            _copy(out, header_value_data + header_value_at, buf, pos, size)
                            header_value_at += size
                            pos += size
                            if header_value_valid >= 0:
                                out[header_value_valid + (header >> 3)] |= 1 << (header & 7)
                        header += 1
                        out32[header_key_starts + header] = header_key_at
                        out32[header_value_starts + header] = header_value_at
                        k += 1
                    if k != number:
                        break
                    out32[header_starts + record + 1] = header
                elif number > 0:  # they were measured, and nobody wants them
                    header += number
                    pos = stop
                if pos != stop:
                    break
                record += 1
                ok = 1
            if ok == 0:
                break
            if pos != end:
                ok = 0
                break
            # what is the same for the whole batch
            if types >= 0:
                number = (attributes >> 3) & 1
                if table[t + _MAGIC] == 0:
                    number = 255  # -1
                for i in range(begin, record):
                    out[types + i] = number
            if codecs >= 0:
                number = attributes & 7
                for i in range(begin, record):
                    out[codecs + i] = number
            if epochs >= 0:
                number = table[t + _LEADER_EPOCH]
                for i in range(begin, record):
                    out32[epochs + i] = number
            if producers >= 0:
                number = table[t + _PRODUCER_ID]
                for i in range(begin, record):
                    out64[producers + i] = number
            if producer_epochs >= 0:
                number = table[t + _PRODUCER_EPOCH]
                for i in range(begin, record):
                    out16[producer_epochs + i] = number
            if places >= 0:
                number = table[t + _POSITION]
                for i in range(begin, record):
                    out64[places + i] = number
            if transactional >= 0 and attributes & 16 != 0 and table[t + _MAGIC] == 2:
                for i in range(begin, record):
                    out[transactional + (i >> 3)] |= 1 << (i & 7)
            if control >= 0 and attributes & 32 != 0 and table[t + _MAGIC] == 2:
                for i in range(begin, record):
                    out[control + (i >> 3)] |= 1 << (i & 7)
    if ok == 0:
        t = row * _STRIDE
        _refuse(17, row, i, table[t + _POSITION], table[t + _BASE_OFFSET])
    state[_S_RECORD] = record
    state[_S_KEY] = key_at
    state[_S_VALUE] = value_at
    state[_S_HEADER] = header
    state[_S_HEADER_KEY] = header_key_at
    state[_S_HEADER_VALUE] = header_value_at

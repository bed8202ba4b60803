"""The hot loops of compaction: keys into a map of last offsets, records judged by it, batches built
again without the records that go.

Cython in pure-Python mode, as `records/_kernel.py`, whose tables of batches it reads: compiled
where there is a C compiler, the same file interpreted where there is none; import it through
`kernel.py`. Varints are read as there by functions of its own: a compiled module cannot inline
those of another. Every call handles a run of batches whose records were measured before, and checks
bounds again.

The map is an array of slots, three numbers each: both halves of a key's hash of 128 bits, and the
offset plus one (0: the slot is free). Hashes are keyed by a seed that is drawn for every map, so
nobody can choose keys that meet. Which hash it is makes no difference to what is kept.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # pragma: no cover - only without Cython, where nothing is compiled anyway
    from kraftline.schema import cython_shim as cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy
else:
    from hashlib import blake2b

from kraftline.errors import Corrupt

COMPILED = cython.compiled

# Columns of a table of batches, as `records/_kernel.py` has them.
_POSITION = cython.declare(cython.longlong, 0)
_SIZE = cython.declare(cython.longlong, 1)
_MAGIC = cython.declare(cython.longlong, 2)
_ATTRIBUTES = cython.declare(cython.longlong, 3)
_COUNT = cython.declare(cython.longlong, 4)
_BASE_OFFSET = cython.declare(cython.longlong, 5)
_BASE_TIMESTAMP = cython.declare(cython.longlong, 6)
_MAX_TIMESTAMP = cython.declare(cython.longlong, 7)
_PRODUCER_ID = cython.declare(cython.longlong, 8)
_BODY = cython.declare(cython.longlong, 12)
_BODY_END = cython.declare(cython.longlong, 13)
_LAST_OFFSET_DELTA = cython.declare(cython.longlong, 14)
_STRIDE = cython.declare(cython.longlong, 16)

# How records of a batch are judged.
_ASK = cython.declare(cython.longlong, 0)  # the map says; tombstones stay
_ASK_DELETES = cython.declare(cython.longlong, 1)  # the map says; tombstones go
_NONE = cython.declare(cython.longlong, 2)
_ALL = cython.declare(cython.longlong, 3)

# What `judge` finds of a batch.
_KEPT = cython.declare(cython.longlong, 0)
_TOMBSTONES = cython.declare(cython.longlong, 1)  # that are kept
_KEYLESS = cython.declare(cython.longlong, 2)
_FIRST = cython.declare(cython.longlong, 3)  # the number of its first record in `keep`
_FOUND = cython.declare(cython.longlong, 4)

# What `found` holds of one record: both halves of its key's hash come first.
_DELTA = cython.declare(cython.longlong, 2)
_KEY = cython.declare(cython.longlong, 3)
_KEY_SIZE = cython.declare(cython.longlong, 4)
SCRATCH = 5

ASK = _ASK
ASK_DELETES = _ASK_DELETES
NONE = _NONE
ALL = _ALL
KEPT = _KEPT
TOMBSTONES = _TOMBSTONES
KEYLESS = _KEYLESS
FIRST = _FIRST
FOUND = _FOUND

# What `note` and `rebuild` give beside their result.
ENTRIES = 0
LATEST = 1
IS_FULL = 2
BASE_TIMESTAMP = 0
MAX_TIMESTAMP = 1


def _refuse(position: int, offset: int):
    raise Corrupt("the batch changed while it was read", position=position, offset=offset)


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
    """The zig-zag number in the `n` bytes at `at`, put together without its sign bit."""
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


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _head(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    found: cython.longlong[::1],
) -> cython.longlong:
    """Where the record at `pos` ends, 0 when it is cut; its offset's delta and its key go into
    `found`. A key of null has a negative size."""
    size: cython.longlong
    stop: cython.longlong
    n: cython.longlong = _varlen(buf, pos, end, 5)
    if n == 0:
        return 0
    size = _narrow(_varnum(buf, pos, n))
    pos += n
    if size < 6 or size > end - pos:
        return 0
    stop = pos + size
    pos += 1
    n = _varlen(buf, pos, stop, 10)  # the timestamp's delta
    if n == 0:
        return 0
    pos += n
    n = _varlen(buf, pos, stop, 5)
    if n == 0:
        return 0
    found[_DELTA] = _narrow(_varnum(buf, pos, n))
    pos += n
    n = _varlen(buf, pos, stop, 5)
    if n == 0:
        return 0
    size = _narrow(_varnum(buf, pos, n))
    pos += n
    if size > stop - pos:
        return 0
    found[_KEY] = pos
    found[_KEY_SIZE] = size
    return stop


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(
    out: cython.uchar[::1], at: cython.longlong, number: cython.longlong
) -> cython.longlong:
    """Write a zig-zag number; where it ends."""
    rest: cython.ulonglong = (number << 1) ^ (number >> 63)
    while rest > 127:
        out[at] = (rest & 127) | 128
        rest >>= 7
        at += 1
    out[at] = rest
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(number: cython.longlong) -> cython.longlong:
    rest: cython.ulonglong = (number << 1) ^ (number >> 63)
    n: cython.longlong = 1
    while rest > 127:
        rest >>= 7
        n += 1
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(
    buf: cython.const[cython.uchar][::1],
    at: cython.longlong,
    size: cython.longlong,
    seed: cython.longlong[::1],
    found: cython.longlong[::1],
) -> cython.void:
    """A key's hash of 128 bits: SipHash-2-4 compiled, BLAKE2b interpreted."""
    v0: cython.ulonglong
    v1: cython.ulonglong
    v2: cython.ulonglong
    v3: cython.ulonglong
    word: cython.ulonglong
    key0: cython.ulonglong
    key1: cython.ulonglong
    left: cython.longlong
    rounds: cython.longlong
    i: cython.longlong
    if cython.compiled:
        word = 0
        key0 = seed[0]
        key1 = seed[1]
        # Cython takes large numbers for C numbers only where they are assigned.
        v0 = 0x736F6D6570736575
        v1 = 0x646F72616E646F6D
        v2 = 0x6C7967656E657261
        v3 = 0x7465646279746573
        v0 ^= key0
        v1 ^= key1
        v1 ^= 0xEE
        v2 ^= key0
        v3 ^= key1
        left = size
        while True:
            rounds = 2
            if left >= 8:
                memcpy(cython.address(word), cython.address(buf[at]), 8)
                at += 8
                left -= 8
            elif left >= 0:
                word = size & 255
                word <<= 56
                for i in range(left):
                    word |= cython.cast(cython.ulonglong, buf[at + i]) << (8 * i)
                left = -1
            elif left == -1:
                word = 0
                v2 ^= 0xEE
                rounds = 4
                left = -2
            else:
                break
            v3 ^= word
            for i in range(rounds):
                v0 += v1
                v2 += v3
                v1 = (v1 << 13) | (v1 >> 51)
                v3 = (v3 << 16) | (v3 >> 48)
                v1 ^= v0
                v3 ^= v2
                v0 = (v0 << 32) | (v0 >> 32)
                v2 += v1
                v0 += v3
                v1 = (v1 << 17) | (v1 >> 47)
                v3 = (v3 << 21) | (v3 >> 43)
                v1 ^= v2
                v3 ^= v0
                v2 = (v2 << 32) | (v2 >> 32)
            v0 ^= word
        found[0] = v0 ^ v1 ^ v2 ^ v3
        v1 ^= 0xDD
        for i in range(4):
            v0 += v1
            v2 += v3
            v1 = (v1 << 13) | (v1 >> 51)
            v3 = (v3 << 16) | (v3 >> 48)
            v1 ^= v0
            v3 ^= v2
            v0 = (v0 << 32) | (v0 >> 32)
            v2 += v1
            v0 += v3
            v1 = (v1 << 17) | (v1 >> 47)
            v3 = (v3 << 21) | (v3 >> 43)
            v1 ^= v2
            v3 ^= v0
            v2 = (v2 << 32) | (v2 >> 32)
        found[1] = v0 ^ v1 ^ v2 ^ v3
    else:
        digest = blake2b(buf[at : at + size], digest_size=16, key=bytes(seed)).digest()
        found[0] = int.from_bytes(digest[:8], "big", signed=True)
        found[1] = int.from_bytes(digest[8:], "big", signed=True)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slot(
    slots: cython.longlong[::1], count: cython.longlong, found: cython.longlong[::1]
) -> cython.longlong:
    """Where a hash is in the map, or the free slot where it belongs; -1 where there is neither."""
    positive: cython.longlong = 0x7FFFFFFFFFFFFFFF
    at: cython.longlong = (found[0] & positive) % count
    tries: cython.longlong
    s: cython.longlong
    for tries in range(count):
        s = 3 * at
        if slots[s + 2] == 0 or (slots[s] == found[0] and slots[s + 1] == found[1]):
            return s
        at += 1
        if at == count:
            at = 0
    return -1


def odd_rows(
    table: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
    bits: cython.longlong,
    end: cython.longlong,
    lasts: cython.longlong[::1],
    out: cython.longlong[::1],
):
    """Rows that are not like most: of an old format, with one of these `bits` in their attributes,
    up to the offset `end`, or a producer's with a last offset out of `lasts` (rising). How many of
    them are in `out`."""
    row: cython.longlong
    t: cython.longlong
    n: cython.longlong = 0
    offset: cython.longlong
    low: cython.longlong
    high: cython.longlong
    middle: cython.longlong
    known: cython.longlong = lasts.shape[0] if cython.compiled else len(lasts)
    is_odd: cython.longlong
    with cython.nogil:
        for row in range(first, last):
            t = row * _STRIDE
            offset = table[t + _BASE_OFFSET] + table[t + _LAST_OFFSET_DELTA]
            is_odd = 0
            if table[t + _MAGIC] < 2 or table[t + _ATTRIBUTES] & bits != 0 or offset + 1 == end:
                is_odd = 1
            elif table[t + _PRODUCER_ID] >= 0 and known > 0:
                low = 0
                high = known - 1
                while low < high:
                    middle = (low + high) // 2
                    if lasts[middle] < offset:
                        low = middle + 1
                    else:
                        high = middle
                if lasts[low] == offset:
                    is_odd = 1
            if is_odd != 0:
                out[n] = row
                n += 1
    return n


def staying(
    found: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
    emptied: cython.const[cython.uchar][::1],
    stays_empty: cython.longlong,
    out: cython.longlong[::1],
):
    """Rows that something stays of: a record, or the header where `emptied` says so. How many of
    them are in `out`."""
    row: cython.longlong
    n: cython.longlong = 0
    with cython.nogil:
        for row in range(first, last):
            if found[row * _FOUND + _KEPT] != 0 or emptied[row] == stays_empty:
                out[n] = row
                n += 1
    return n


def note(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
    wanted: cython.const[cython.uchar][::1],
    start: cython.longlong,
    slots: cython.longlong[::1],
    most: cython.longlong,
    comfortable: cython.longlong,
    seed: cython.longlong[::1],
    state: cython.longlong[::1],
    found: cython.longlong[::1],
):
    """Note the keys of rows first..last-1 that are wanted, from the offset `start` on.

    Returns how many rows were noted to their end: fewer than asked for where the map had `most`
    entries before, or where a row might bring it past a `comfortable` number of them (negative:
    any is). `state` is how many there are, the offset up to which all keys are noted, and whether
    the map is full.
    """
    row: cython.longlong
    t: cython.longlong = 0
    pos: cython.longlong
    end: cython.longlong
    stop: cython.longlong
    i: cython.longlong
    size: cython.longlong
    offset: cython.longlong
    s: cython.longlong
    code: cython.longlong = 0
    done: cython.longlong = 0
    entries: cython.longlong = state[0]
    latest: cython.longlong = state[1]
    count: cython.longlong = (slots.shape[0] if cython.compiled else len(slots)) // 3
    with cython.nogil:
        for row in range(first, last):
            t = row * _STRIDE
            if wanted[row] != 0:
                if comfortable >= 0 and entries + table[t + _COUNT] > comfortable:
                    break
                pos = table[t + _BODY]
                end = table[t + _BODY_END]
                for i in range(table[t + _COUNT]):
                    code = 1
                    stop = _head(buf, pos, end, found)
                    if stop == 0:
                        break
                    offset = table[t + _BASE_OFFSET] + found[_DELTA]
                    pos = found[_KEY]
                    size = found[_KEY_SIZE]
                    if size >= 0 and offset >= start:
                        if entries >= most:
                            code = 2
                            break
                        _hash(buf, pos, size, seed, found)
                        s = _slot(slots, count, found)
                        if s < 0:
                            code = 2
                            break
                        if slots[s + 2] == 0:
                            slots[s] = found[0]
                            slots[s + 1] = found[1]
                            entries += 1
                        slots[s + 2] = offset + 1
                        latest = offset
                    pos = stop
                    code = 0
                if code != 0:
                    break
            offset = table[t + _BASE_OFFSET] + table[t + _LAST_OFFSET_DELTA]
            if offset >= start:
                latest = offset
            done += 1
    if code == 1:
        _refuse(table[t + _POSITION], table[t + _BASE_OFFSET])
    state[0] = entries
    state[1] = latest
    state[2] = 1 if code == 2 else 0
    return done


def rehash(slots: cython.longlong[::1], into: cython.longlong[::1], found: cython.longlong[::1]):
    """Put all entries into a larger map, which is empty."""
    count: cython.longlong = (slots.shape[0] if cython.compiled else len(slots)) // 3
    room: cython.longlong = (into.shape[0] if cython.compiled else len(into)) // 3
    i: cython.longlong
    s: cython.longlong
    with cython.nogil:
        for i in range(count):
            if slots[3 * i + 2] != 0:
                found[0] = slots[3 * i]
                found[1] = slots[3 * i + 1]
                s = _slot(into, room, found)
                into[s] = found[0]
                into[s + 1] = found[1]
                into[s + 2] = slots[3 * i + 2]


def judge(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    first: cython.longlong,
    last: cython.longlong,
    how: cython.const[cython.uchar][::1],
    slots: cython.longlong[::1],
    latest: cython.longlong,
    seed: cython.longlong[::1],
    keep: cython.uchar[::1],
    record: cython.longlong,
    out: cython.longlong[::1],
    found: cython.longlong[::1],
):
    """Which records of rows first..last-1 stay: a 1 in `keep` for each, from `record` on.

    What is past the offset `latest` stays in any case. A record stays that has a key, and the map
    knows no later one of that key. `out` gets FOUND numbers for each row of the table. Returns
    where the next record's place in `keep` is.
    """
    row: cython.longlong
    t: cython.longlong = 0
    f: cython.longlong
    pos: cython.longlong
    end: cython.longlong
    stop: cython.longlong
    i: cython.longlong
    n: cython.longlong
    size: cython.longlong
    offset: cython.longlong
    mode: cython.longlong
    stays: cython.longlong
    kept: cython.longlong
    tombstones: cython.longlong
    keyless: cython.longlong
    key: cython.longlong
    s: cython.longlong
    room: cython.longlong = keep.shape[0] if cython.compiled else len(keep)
    code: cython.longlong = 0
    count: cython.longlong = (slots.shape[0] if cython.compiled else len(slots)) // 3
    with cython.nogil:
        for row in range(first, last):
            t = row * _STRIDE
            f = row * _FOUND
            pos = table[t + _BODY]
            end = table[t + _BODY_END]
            mode = how[row]
            kept = 0
            tombstones = 0
            keyless = 0
            out[f + _FIRST] = record
            for i in range(table[t + _COUNT]):
                code = 1
                if record >= room:
                    break
                stop = _head(buf, pos, end, found)
                if stop == 0:
                    break
                offset = table[t + _BASE_OFFSET] + found[_DELTA]
                pos = found[_KEY]
                size = found[_KEY_SIZE]
                key = pos
                if size > 0:
                    pos += size
                n = _varlen(buf, pos, stop, 5)
                if n == 0:
                    break
                n = _narrow(_varnum(buf, pos, n))  # the value's length; negative: a tombstone
                if mode == _NONE:
                    stays = 0
                elif mode == _ALL or offset > latest:
                    stays = 1
                elif size < 0:
                    stays = 0
                    keyless += 1
                elif n < 0 and mode == _ASK_DELETES:
                    stays = 0
                else:
                    _hash(buf, key, size, seed, found)
                    s = _slot(slots, count, found)
                    stays = 1 if s < 0 or offset >= slots[s + 2] - 1 else 0
                keep[record] = stays
                kept += stays
                if stays != 0 and n < 0:
                    tombstones += 1
                record += 1
                pos = stop
                code = 0
            if code != 0:
                break
            out[f + _KEPT] = kept
            out[f + _TOMBSTONES] = tombstones
            out[f + _KEYLESS] = keyless
    if code != 0:
        _refuse(table[t + _POSITION], table[t + _BASE_OFFSET])
    return record


def rebuild(
    buf: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    row: cython.longlong,
    keep: cython.const[cython.uchar][::1],
    record: cython.longlong,
    has_horizon: cython.longlong,
    horizon: cython.longlong,
    out: cython.uchar[::1],
    at: cython.longlong,
    result: cython.longlong[::1],
):
    """Write the records of a row that stay into `out` from `at` on; where they end, -1 where
    there is no room.

    Their timestamps count from `horizon` where there is one, else from the first of them. `result`
    gets that base, and the newest timestamp.
    """
    t: cython.longlong = row * _STRIDE
    pos: cython.longlong = table[t + _BODY]
    end: cython.longlong = table[t + _BODY_END]
    stop: cython.longlong
    i: cython.longlong
    n: cython.longlong
    size: cython.longlong
    timestamp: cython.longlong
    base: cython.longlong = horizon
    known: cython.longlong = has_horizon
    newest: cython.longlong = -1
    append_time: cython.longlong = table[t + _ATTRIBUTES] & 8
    room: cython.longlong = out.shape[0] if cython.compiled else len(out)
    code: cython.longlong = 0
    with cython.nogil:
        for i in range(table[t + _COUNT]):
            code = 1
            n = _varlen(buf, pos, end, 5)
            if n == 0:
                break
            size = _narrow(_varnum(buf, pos, n))
            pos += n
            if size < 6 or size > end - pos:
                break
            stop = pos + size
            if keep[record + i] != 0:
                n = _varlen(buf, pos + 1, stop, 10)
                if n == 0:
                    break
                timestamp = table[t + _BASE_TIMESTAMP] + _varnum(buf, pos + 1, n)
                if append_time != 0:
                    timestamp = table[t + _MAX_TIMESTAMP]
                if known == 0:
                    base = timestamp
                    known = 1
                if timestamp > newest:
                    newest = timestamp
                size = stop - (pos + 1 + n)  # of the offset and all behind it
                n = pos + 1 + n
                if room - at < 16 + size:
                    code = 2
                    break
                at = _put_varint(out, at, 1 + _varint_size(timestamp - base) + size)
                out[at] = buf[pos]
                at = _put_varint(out, at + 1, timestamp - base)
                if cython.compiled:
                    memcpy(cython.address(out[at]), cython.address(buf[n]), size)
                else:
                    out[at : at + size] = buf[n : n + size]
                at += size
            pos = stop
            code = 0
    if code == 1:
        _refuse(table[t + _POSITION], table[t + _BASE_OFFSET])
    result[0] = base
    result[1] = newest
    return -1 if code == 2 else at

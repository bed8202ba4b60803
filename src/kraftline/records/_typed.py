"""The hot loops from metadata batches to columns and JSON: run the programs of `schema.columns`.

Cython in pure-Python mode; the same file runs interpreted where it was not compiled. One call walks
a run of whole v2 batches twice: `fill=False` counts rows, elements and bytes, `fill=True` writes
them into one arena. What this loop will not decide (control and compressed batches, unknown types,
malformed or unusual records) is listed in `aside` and left to the object codec: nothing is skipped.
"""

try:
    import cython
except ImportError:  # pragma: no cover - only without Cython, where nothing is compiled anyway
    from kraftline.schema import cython_shim as cython

# Instructions are eight int64 each; `schema.columns` names them and says what their operands mean.
# Numbers stand here instead of names because C turns a chain of literals into a jump table.

# Why something was put aside.
REASONS = (
    "control batch",
    "other batch",
    "bad batch",
    "bad value",
    "unknown type",
    "unknown version",
)

ASIDE_WIDTH = 5  # reason, batch position, offset, start and end in the buffer

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _i16(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    v: cython.longlong = buf[at]
    v = (v << 8) | buf[at + 1]
    return v - 65536 if v > 0x7FFF else v


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _i32(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    v: cython.longlong = buf[at]
    v = (v << 8) | buf[at + 1]
    v = (v << 8) | buf[at + 2]
    v = (v << 8) | buf[at + 3]
    return v - 0x7FFFFFFF - 0x7FFFFFFF - 2 if v > 0x7FFFFFFF else v


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _i64(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    low: cython.longlong = buf[at + 4]
    low = (low << 8) | buf[at + 5]
    low = (low << 8) | buf[at + 6]
    low = (low << 8) | buf[at + 7]
    return (_i32(buf, at) << 32) | low


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int(
    buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, width: cython.Py_ssize_t
) -> cython.longlong:
    """A signed big-endian integer of one, two, four or eight bytes."""
    if width == 4:
        return _i32(buf, at)
    if width == 8:
        return _i64(buf, at)
    if width == 2:
        return _i16(buf, at)
    return buf[at] - 256 if buf[at] > 127 else buf[at]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    buf: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
) -> cython.longlong:
    """An unsigned varint of at most `most` (8) bytes: sixteen times its value, plus its size.

    0 when it does not end in time. One number, because a C function gives back but one.
    """
    v: cython.longlong = 0
    b: cython.longlong
    i: cython.Py_ssize_t = 0
    if at < end:
        b = buf[at]
        if b < 128:
            return (b << 4) | 1
    while i < most and at + i < end:
        b = buf[at + i]
        v |= (b & 127) << (7 * i)
        i += 1
        if b < 128:
            return (v << 4) | i
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(packed: cython.longlong) -> cython.longlong:
    """The signed number that a varint stands for."""
    return (packed >> 5) ^ -((packed >> 4) & 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put16(out: cython.uchar[::1], at: cython.Py_ssize_t, v: cython.longlong) -> cython.void:
    """Store little-endian, as Arrow wants it."""
    out[at] = v & 255
    out[at + 1] = (v >> 8) & 255


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put32(out: cython.uchar[::1], at: cython.Py_ssize_t, v: cython.longlong) -> cython.void:
    out[at] = v & 255
    out[at + 1] = (v >> 8) & 255
    out[at + 2] = (v >> 16) & 255
    out[at + 3] = (v >> 24) & 255


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put64(out: cython.uchar[::1], at: cython.Py_ssize_t, v: cython.longlong) -> cython.void:
    out[at] = v & 255
    out[at + 1] = (v >> 8) & 255
    out[at + 2] = (v >> 16) & 255
    out[at + 3] = (v >> 24) & 255
    out[at + 4] = (v >> 32) & 255
    out[at + 5] = (v >> 40) & 255
    out[at + 6] = (v >> 48) & 255
    out[at + 7] = (v >> 56) & 255


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    v: cython.longlong,
    width: cython.Py_ssize_t,
) -> cython.void:
    if width == 4:
        _put32(out, at, v)
    elif width == 8:
        _put64(out, at, v)
    elif width == 2:
        _put16(out, at, v)
    else:
        out[at] = v & 255


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_utf8(
    buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.bint:
    b: cython.int
    c: cython.int
    more: cython.int
    while at < end:
        b = buf[at]
        at += 1
        if b < 0x80:
            continue
        if b < 0xC2 or b > 0xF4:
            return False
        more = 1 if b < 0xE0 else (2 if b < 0xF0 else 3)
        if at + more > end:
            return False
        c = buf[at]
        if b == 0xE0 and c < 0xA0:
            return False
        if b == 0xED and c > 0x9F:
            return False
        if b == 0xF0 and c < 0x90:
            return False
        if b == 0xF4 and c > 0x8F:
            return False
        while more > 0:
            c = buf[at]
            if c < 0x80 or c > 0xBF:
                return False
            at += 1
            more -= 1
    return True


def metadata_columns(
    buf: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    file_position: cython.longlong,
    program: cython.const[cython.longlong][::1],
    entries: cython.const[cython.longlong][::1],
    types: cython.Py_ssize_t,
    versions: cython.Py_ssize_t,
    counters: cython.longlong[::1],
    bases: cython.longlong[::1],
    out: cython.uchar[::1],
    aside: cython.longlong[::1],
    stack: cython.longlong[::1],
    known: cython.Py_ssize_t,
) -> tuple:
    """Walk the whole batches in `buf[start:end]`; give (position reached, rows put in `aside`).

    `entries[type * versions + version]` is the program's first instruction or -1; that one names
    the type's row counter and its five meta buffers. `counters` holds how many rows, elements and
    bytes there are so far; `bases` where each buffer starts in `out`. With `known` < 0 the call
    only counts; else it fills, and passes over the `known` rows that counting put aside.
    """
    pos: cython.Py_ssize_t = start
    batch_end: cython.Py_ssize_t
    rec_end: cython.Py_ssize_t
    value_end: cython.Py_ssize_t
    at: cython.Py_ssize_t
    vs: cython.Py_ssize_t
    size: cython.Py_ssize_t
    packed: cython.longlong
    pc: cython.Py_ssize_t
    sp: cython.Py_ssize_t
    row: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    width: cython.Py_ssize_t
    op: cython.longlong
    n: cython.longlong
    v: cython.longlong
    entry: cython.longlong
    kind: cython.longlong
    version: cython.longlong
    length: cython.longlong
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    append_time: cython.bint
    max_timestamp: cython.longlong
    epoch: cython.longlong
    count: cython.longlong
    offset: cython.longlong
    timestamp: cython.longlong
    attributes: cython.longlong
    batch_position: cython.longlong
    r: cython.longlong
    reason: cython.longlong
    put: cython.Py_ssize_t = 0  # rows in aside; when filling, the next one to pass over
    room: cython.Py_ssize_t = len(aside) // 5
    fill: cython.bint = known >= 0
    b0: cython.int
    alphabet: cython.const[cython.uchar][::1] = _BASE64

    with cython.nogil:
        while pos < end:
            if not fill and room - put < 2:
                break
            if end - pos < 61:
                break
            length = _i32(buf, pos + 8)
            if length < 49 or length > end - pos - 12:
                break
            batch_position = file_position + pos - start
            batch_end = pos + 12 + length
            base_offset = _i64(buf, pos)
            epoch = _i32(buf, pos + 12)
            attributes = _i16(buf, pos + 21)
            count = _i32(buf, pos + 57)
            reason = -1
            if buf[pos + 16] != 2 or attributes & 7:
                reason = 1  # OTHER_BATCH
            elif attributes & 32:
                reason = 0  # CONTROL_BATCH
            elif count < 0 or count * 7 > batch_end - pos - 61:
                reason = 2  # BAD_BATCH
            elif not fill and room - put < count + 1 and put > 0:
                break  # not enough room to put every record aside: the caller comes back here
            elif not fill and room < count + 1:
                reason = 1  # OTHER_BATCH
            if reason >= 0:
                if not fill:
                    i = put * 5
                    aside[i] = reason
                    aside[i + 1] = batch_position
                    aside[i + 2] = base_offset
                    aside[i + 3] = pos
                    aside[i + 4] = batch_end
                put += 1
                pos = batch_end
                continue
            base_timestamp = _i64(buf, pos + 27)
            max_timestamp = _i64(buf, pos + 35)
            append_time = (attributes & 8) != 0
            at = pos + 61
            for r in range(count):
                # The record around the value.
                reason = 2  # BAD_BATCH
                vs = at
                rec_end = at
                offset = base_offset
                while True:  # left by `break` with a reason, or with reason -1
                    packed = _varint(buf, at, batch_end, 5)
                    if packed == 0:
                        break
                    length = _signed(packed)
                    at += packed & 15
                    if length < 6 or length > batch_end - at:
                        break
                    rec_end = at + length
                    at += 1  # attributes
                    packed = _varint(buf, at, rec_end, 8)
                    if packed == 0:
                        break
                    timestamp = base_timestamp + _signed(packed)
                    if append_time:
                        timestamp = max_timestamp
                    at += packed & 15
                    packed = _varint(buf, at, rec_end, 5)
                    if packed == 0:
                        break
                    offset = base_offset + _signed(packed)
                    at += packed & 15
                    packed = _varint(buf, at, rec_end, 5)
                    if packed == 0:
                        break
                    length = _signed(packed)
                    at += packed & 15
                    if length > 0:
                        if length > rec_end - at:
                            break
                        at += length
                    packed = _varint(buf, at, rec_end, 5)
                    if packed == 0:
                        break
                    length = _signed(packed)
                    at += packed & 15
                    if length > rec_end - at:
                        break
                    vs = at
                    reason = 3  # BAD_VALUE
                    value_end = at
                    if length < 3:
                        break
                    value_end = at + length
                    if buf[at] != 1:
                        break
                    at += 1
                    packed = _varint(buf, at, value_end, 5)
                    kind = packed >> 4 if packed > 0 else -1
                    at += packed & 15
                    if kind < 0 or kind >= types:
                        reason = 4  # UNKNOWN_TYPE
                        break
                    packed = _varint(buf, at, value_end, 5)
                    version = packed >> 4 if packed > 0 else -1
                    at += packed & 15
                    if version < 0 or version >= versions:
                        reason = 5  # UNKNOWN_VERSION
                        break
                    entry = entries[kind * versions + version]
                    if entry < 0:
                        reason = 5  # UNKNOWN_VERSION
                        break
                    if fill and put < known and aside[put * 5 + 3] == vs:
                        reason = aside[put * 5]
                        break
                    # The value: run its program.
                    pc = entry
                    sp = 0
                    row = counters[program[pc + 1]]
                    if fill:
                        _put64(out, bases[program[pc + 2]] + row * 8, offset)
                        _put64(out, bases[program[pc + 2] + 1] + row * 8, timestamp)
                        _put32(out, bases[program[pc + 2] + 2] + row * 4, epoch)
                        _put64(out, bases[program[pc + 2] + 3] + row * 8, batch_position)
                        _put16(out, bases[program[pc + 2] + 4] + row * 2, version)
                    pc += 8
                    while True:
                        op = program[pc]
                        if op == 1:  # FIXED
                            width = program[pc + 4]
                            if value_end - at < width:
                                break
                            if fill:
                                k = bases[program[pc + 3]] + counters[program[pc + 1]] * width
                                _put(out, k, _int(buf, at, width), width)
                            at += width
                        elif (
                            op == 4 or op == 5 or op == 6
                        ):  # COMPACT_BYTES, SHORT_BYTES, LONG_BYTES
                            if op == 4:  # COMPACT_BYTES
                                packed = _varint(buf, at, value_end, 5)
                                if packed == 0:
                                    break
                                n = (packed >> 4) - 1
                                at += packed & 15
                            else:
                                size = 2 if op == 5 else 4
                                if value_end - at < size:
                                    break
                                n = _i16(buf, at) if size == 2 else _i32(buf, at)
                                at += size
                            row = counters[program[pc + 1]]
                            if n < 0:
                                if program[pc + 2] < 0 or n < -1:
                                    break
                                n = 0
                            else:
                                if n > value_end - at:
                                    break
                                if not fill and program[pc + 6] and not _is_utf8(buf, at, at + n):
                                    break
                                if fill and program[pc + 2] >= 0:
                                    out[bases[program[pc + 2]] + (row >> 3)] |= 1 << (row & 7)
                            v = counters[program[pc + 5]]
                            if fill:
                                k = bases[program[pc + 4]] + v
                                for i in range(n):
                                    out[k + i] = buf[at + i]
                                _put32(out, bases[program[pc + 3]] + row * 4 + 4, v + n)
                            counters[program[pc + 5]] = v + n
                            at += n
                        elif op == 3:  # UUID
                            if value_end - at < 16:
                                break
                            if fill:
                                row = counters[program[pc + 1]]
                                k = bases[program[pc + 4]] + row * 22
                                _put32(out, bases[program[pc + 3]] + row * 4 + 4, row * 22 + 22)
                                i = at
                                for j in range(5):
                                    # Three bytes in one number: apart, C spills and reloads them.
                                    v = buf[i]
                                    v = (v << 8) | buf[i + 1]
                                    v = (v << 8) | buf[i + 2]
                                    out[k] = alphabet[v >> 18]
                                    out[k + 1] = alphabet[(v >> 12) & 63]
                                    out[k + 2] = alphabet[(v >> 6) & 63]
                                    out[k + 3] = alphabet[v & 63]
                                    i += 3
                                    k += 4
                                b0 = buf[i]
                                out[k] = alphabet[b0 >> 2]
                                out[k + 1] = alphabet[(b0 & 3) << 4]
                            at += 16
                        elif op == 7 or op == 8 or op == 16:  # COMPACT_ARRAY, ARRAY, FIXED_ARRAY
                            if op == 8:  # ARRAY
                                if value_end - at < 4:
                                    break
                                n = _i32(buf, at)
                                at += 4
                            else:
                                packed = _varint(buf, at, value_end, 5)
                                if packed == 0:
                                    break
                                n = (packed >> 4) - 1
                                at += packed & 15
                            row = counters[program[pc + 1]]
                            if n < 0:
                                if program[pc + 2] < 0 or n < -1:
                                    break
                                n = 0
                            elif fill and program[pc + 2] >= 0:
                                out[bases[program[pc + 2]] + (row >> 3)] |= 1 << (row & 7)
                            v = counters[program[pc + 4]]
                            if fill:
                                _put32(out, bases[program[pc + 3]] + row * 4 + 4, v + n)
                            if op == 16:  # FIXED_ARRAY
                                if n > (value_end - at) // 4:
                                    break
                                if fill:
                                    k = bases[program[pc + 5]] + v * 4
                                    for i in range(n):
                                        _put32(out, k + i * 4, _i32(buf, at + i * 4))
                                at += n * 4
                                counters[program[pc + 4]] = v + n
                            else:
                                if n > value_end - at:
                                    break
                                if n == 0:
                                    pc = program[pc + 7]
                                    continue
                                stack[sp] = n
                                sp += 4
                        elif op == 9:  # NEXT
                            counters[program[pc + 1]] += 1
                            stack[sp - 4] -= 1
                            if stack[sp - 4] > 0:
                                pc = program[pc + 7]
                                continue
                            sp -= 4
                        elif op == 10:  # TAGS
                            packed = _varint(buf, at, value_end, 5)
                            if packed == 0:
                                break
                            n = packed >> 4
                            at += packed & 15
                            if n == 0:
                                pc = program[pc + 7]
                                continue
                            if n > value_end - at:
                                break
                            # A frame: tags left, the last tag, where the present one ends.
                            stack[sp] = n
                            stack[sp + 1] = -1
                            stack[sp + 2] = at
                            sp += 4
                            pc = program[pc + 6]  # its TAG_END
                            continue
                        elif op == 11:  # TAG_END
                            # Also the way in: then the frame's end is where we stand.
                            if at != stack[sp - 2]:
                                break
                            if stack[sp - 4] == 0:
                                sp -= 4
                                pc += 8
                                continue
                            stack[sp - 4] -= 1
                            packed = _varint(buf, at, value_end, 5)
                            if packed == 0:
                                break
                            v = packed >> 4
                            at += packed & 15
                            packed = _varint(buf, at, value_end, 5)
                            if packed == 0:
                                break
                            n = packed >> 4
                            at += packed & 15
                            if v <= stack[sp - 3] or n > value_end - at:
                                break
                            stack[sp - 3] = v
                            stack[sp - 2] = at + n
                            # Operand 2 says how many known tags stand as (tag, pc) pairs from 3 on,
                            # in this and the instructions after it that are only room for them.
                            k = -1
                            for i in range(program[pc + 2]):
                                if program[program[pc + 3] + 2 * i] == v:
                                    k = program[program[pc + 3] + 2 * i + 1]
                            if k < 0:
                                at += n  # an unknown tag: its bytes stay with the record
                                continue
                            pc = k
                            continue
                        elif op == 2:  # BOOL
                            if value_end - at < 1:
                                break
                            if fill:
                                row = counters[program[pc + 1]]
                                k = bases[program[pc + 3]] + (row >> 3)
                                if buf[at] != 0:
                                    out[k] |= 1 << (row & 7)
                                else:  # a tagged field may stand on a default of true
                                    out[k] &= 255 - (1 << (row & 7))
                            at += 1
                        elif op == 12:  # DEFAULT_FIXED
                            if fill:
                                row = counters[program[pc + 1]]
                                width = program[pc + 4]
                                _put(
                                    out,
                                    bases[program[pc + 3]] + row * width,
                                    program[pc + 6],
                                    width,
                                )
                        elif op == 14:  # DEFAULT_EMPTY
                            if fill:
                                row = counters[program[pc + 1]]
                                v = counters[program[pc + 5]]
                                _put32(out, bases[program[pc + 3]] + row * 4 + 4, v)
                                if program[pc + 6] and program[pc + 2] >= 0:
                                    out[bases[program[pc + 2]] + (row >> 3)] |= 1 << (row & 7)
                        elif op == 13:  # DEFAULT_BOOL
                            if fill and program[pc + 6]:
                                row = counters[program[pc + 1]]
                                out[bases[program[pc + 3]] + (row >> 3)] |= 1 << (row & 7)
                        elif op == 15:  # DEFAULT_UUID
                            if fill:
                                row = counters[program[pc + 1]]
                                k = bases[program[pc + 4]] + row * 22
                                _put32(out, bases[program[pc + 3]] + row * 4 + 4, row * 22 + 22)
                                for i in range(22):
                                    out[k + i] = 65
                        elif op == 17:  # JUMP
                            pc = program[pc + 7]
                            continue
                        elif op == 0:  # END
                            if at == value_end:
                                reason = -1
                            break
                        pc += 8
                    break
                if reason < 0:
                    counters[program[entry + 1]] += 1
                    at = rec_end
                    continue
                if not fill:
                    i = put * 5
                    aside[i] = reason
                    aside[i + 1] = batch_position
                    aside[i + 2] = offset
                    aside[i + 3] = vs
                    aside[i + 4] = value_end if reason != 2 else batch_end
                put += 1
                at = rec_end
                if reason == 2:  # framing is lost: the rest of the batch goes with it
                    at = batch_end
                    break
            if at != batch_end:  # bytes that no record claims
                if not fill:
                    i = put * 5
                    aside[i] = 2
                    aside[i + 1] = batch_position
                    aside[i + 2] = base_offset
                    aside[i + 3] = at
                    aside[i + 4] = batch_end
                put += 1
            pos = batch_end
    return pos, put


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _decimal(
    out: cython.uchar[::1], at: cython.Py_ssize_t, v: cython.longlong
) -> cython.Py_ssize_t:
    """Write an integer as text (at most 20 bytes); give where it ends. -2^63 is never asked for."""
    n: cython.Py_ssize_t = 1
    t: cython.longlong
    if v < 0:
        out[at] = 45
        at += 1
        v = -v
    t = v
    while t > 9:
        t = t // 10
        n += 1
    t = n
    while t > 0:
        t -= 1
        out[at + t] = 48 + v % 10
        v = v // 10
    return at + n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    src: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t
    for i in range(n):
        out[at + i] = src[start + i]
    return at + n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _base64(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    src: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    alphabet: cython.const[cython.uchar][::1],
    pad: cython.bint,
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t = start
    end: cython.Py_ssize_t = start + n
    b0: cython.int
    b1: cython.int
    b2: cython.int
    while i + 2 < end:
        b0 = src[i]
        b1 = src[i + 1]
        b2 = src[i + 2]
        out[at] = alphabet[b0 >> 2]
        out[at + 1] = alphabet[(b0 & 3) << 4 | b1 >> 4]
        out[at + 2] = alphabet[(b1 & 15) << 2 | b2 >> 6]
        out[at + 3] = alphabet[b2 & 63]
        at += 4
        i += 3
    if i < end:
        b0 = src[i]
        b1 = 0
        if i + 1 < end:
            b1 = src[i + 1]
        out[at] = alphabet[b0 >> 2]
        out[at + 1] = alphabet[(b0 & 3) << 4 | b1 >> 4]
        at += 2
        if i + 1 < end:
            out[at] = alphabet[(b1 & 15) << 2]
            at += 1
        elif pad:
            out[at] = 61
            at += 1
        if pad:
            out[at] = 61
            at += 1
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _quoted(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    src: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """A JSON string; takes at most 6 n + 2 bytes."""
    i: cython.Py_ssize_t
    b: cython.int
    h: cython.int
    out[at] = 34
    at += 1
    for i in range(start, start + n):
        b = src[i]
        if b == 34 or b == 92:
            out[at] = 92
            out[at + 1] = b
            at += 2
        elif b < 32:
            out[at] = 92
            out[at + 1] = 117
            out[at + 2] = 48
            out[at + 3] = 48
            out[at + 4] = 48 + (b >> 4)
            h = b & 15
            out[at + 5] = 48 + h if h < 10 else 87 + h
            at += 6
        else:
            out[at] = b
            at += 1
    out[at] = 34
    return at + 1


def metadata_lines(
    buf: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    file_position: cython.longlong,
    prefix: cython.const[cython.uchar][::1],
    program: cython.const[cython.longlong][::1],
    entries: cython.const[cython.longlong][::1],
    types: cython.Py_ssize_t,
    versions: cython.Py_ssize_t,
    names: cython.const[cython.uchar][::1],
    name_at: cython.const[cython.longlong][::1],
    defaults: cython.const[cython.longlong][::1],
    fixed_text: cython.const[cython.uchar][::1],
    text_at: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
    stack: cython.longlong[::1],
) -> tuple:
    """Write the records of plain batches as JSON lines; give (position reached, bytes written).

    It stops before a batch that holds anything out of the ordinary, or that has no room in `out`:
    the caller writes that one through the object codec. `names` and `name_at` hold the text that
    an instruction's value starts with; `defaults` what Kafka would not have written in a tagged
    field, and would not print; `fixed_text` and `text_at` what stands between the numbers
    of a line.
    """
    pos: cython.Py_ssize_t = start
    done: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    room: cython.Py_ssize_t = len(out)
    batch_end: cython.Py_ssize_t
    rec_end: cython.Py_ssize_t
    value_end: cython.Py_ssize_t
    vs: cython.Py_ssize_t
    at: cython.Py_ssize_t
    size: cython.Py_ssize_t
    packed: cython.longlong
    pc: cython.Py_ssize_t
    sp: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    op: cython.longlong
    n: cython.longlong
    v: cython.longlong
    kind: cython.longlong
    version: cython.longlong
    length: cython.longlong
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    epoch: cython.longlong
    producer_id: cython.longlong
    producer_epoch: cython.longlong
    count: cython.longlong
    offset: cython.longlong
    timestamp: cython.longlong
    r: cython.longlong
    good: cython.bint
    url: cython.const[cython.uchar][::1] = _BASE64
    std: cython.const[cython.uchar][::1] = _BASE64[:62] + b"+/"
    two32: cython.longlong = 65536
    prefix_size: cython.Py_ssize_t = len(prefix)
    head: cython.Py_ssize_t = prefix_size + len(fixed_text) + 200

    two32 = two32 * two32

    with cython.nogil:
        while pos < end:
            if end - pos < 61:
                break
            length = _i32(buf, pos + 8)
            if length < 49 or length > end - pos - 12:
                break
            batch_end = pos + 12 + length
            base_offset = _i64(buf, pos)
            epoch = _i32(buf, pos + 12)
            base_timestamp = _i64(buf, pos + 27)
            producer_id = _i64(buf, pos + 43)
            producer_epoch = _i16(buf, pos + 51)
            count = _i32(buf, pos + 57)
            # Plain: magic 2, no attribute at all, no sequence, timestamps and ids in decent range.
            if buf[pos + 16] != 2 or buf[pos + 21] != 0 or buf[pos + 22] != 0:
                break
            if _i32(buf, pos + 53) != -1 or buf[pos] > 63 or buf[pos + 27] > 63:
                break
            if producer_id < -1 or count < 0 or count * 7 > batch_end - pos - 61:
                break
            at = pos + 61
            good = True
            for r in range(count):
                good = False
                packed = _varint(buf, at, batch_end, 5)
                if packed == 0:
                    break
                length = _signed(packed)
                at += packed & 15
                if length < 6 or length > batch_end - at:
                    break
                rec_end = at + length
                at += 1
                packed = _varint(buf, at, rec_end, 6)
                if packed == 0:
                    break
                timestamp = base_timestamp + _signed(packed)
                at += packed & 15
                packed = _varint(buf, at, rec_end, 5)
                if packed == 0:
                    break
                offset = base_offset + _signed(packed)
                at += packed & 15
                if rec_end - at < 3 or buf[at] != 1:  # the key is null
                    break
                at += 1
                packed = _varint(buf, at, rec_end, 5)
                if packed == 0:
                    break
                length = _signed(packed)
                at += packed & 15
                # The value, and behind it only a zero: no headers.
                if length < 3 or at + length + 1 != rec_end or buf[rec_end - 1] != 0:
                    break
                vs = at
                value_end = at + length
                if buf[at] != 1:
                    break
                at += 1
                packed = _varint(buf, at, value_end, 5)
                kind = packed >> 4 if packed > 0 else -1
                at += packed & 15
                if kind < 0 or kind >= types:
                    break
                packed = _varint(buf, at, value_end, 5)
                version = packed >> 4 if packed > 0 else -1
                at += packed & 15
                if version < 0 or version >= versions:
                    break
                pc = entries[kind * versions + version]
                if pc < 0:
                    break
                if room - o < head + 2 * length:
                    break
                o = _copy(out, o, prefix, 0, prefix_size)
                o = _decimal(out, o, file_position + pos - start)
                o = _copy(out, o, fixed_text, text_at[0], text_at[1] - text_at[0])
                o = _decimal(out, o, offset)
                o = _copy(out, o, fixed_text, text_at[1], text_at[2] - text_at[1])
                o = _decimal(out, o, timestamp)
                o = _copy(out, o, fixed_text, text_at[2], text_at[3] - text_at[2])
                o = _decimal(out, o, epoch)
                o = _copy(out, o, fixed_text, text_at[3], text_at[4] - text_at[3])
                o = _decimal(out, o, producer_id)
                o = _copy(out, o, fixed_text, text_at[4], text_at[5] - text_at[4])
                o = _decimal(out, o, producer_epoch)
                o = _copy(out, o, fixed_text, text_at[5], text_at[6] - text_at[5])
                o = _base64(out, o, buf, vs, length, std, True)
                o = _copy(out, o, fixed_text, text_at[6], text_at[7] - text_at[6])
                sp = 0
                while True:
                    op = program[pc]
                    i = pc >> 2
                    n = name_at[i + 1]
                    if room - o < n + 64:
                        break
                    if n > 0:
                        o = _copy(out, o, names, name_at[i], n)
                    if op == 1:  # FIXED
                        size = program[pc + 4]
                        if value_end - at < size:
                            break
                        v = _int(buf, at, size)
                        if program[pc + 5] == 1 and v < 0:
                            v = v + (65536 if size == 2 else two32)
                        elif program[pc + 5] == 2 or (size == 8 and buf[at] == 128):
                            break  # a float, or a number near -2^63
                        if defaults[i] == 1 and v == defaults[i + 1]:
                            break
                        o = _decimal(out, o, v)
                        out[o] = 44
                        o += 1
                        at += size
                    elif op == 4 or op == 5 or op == 6:  # COMPACT_BYTES, SHORT_BYTES, LONG_BYTES
                        if op == 4:
                            packed = _varint(buf, at, value_end, 5)
                            if packed == 0:
                                break
                            n = (packed >> 4) - 1
                            at += packed & 15
                        else:
                            size = 2 if op == 5 else 4
                            if value_end - at < size:
                                break
                            n = _i16(buf, at) if size == 2 else _i32(buf, at)
                            at += size
                        if (n < 0 and defaults[i] == 2) or (n == 0 and defaults[i] == 3):
                            break
                        if n < 0:
                            if program[pc + 2] < 0 or n < -1:
                                break
                            out[o] = 110
                            out[o + 1] = 117
                            out[o + 2] = 108
                            out[o + 3] = 108
                            o += 4
                        else:
                            if n > value_end - at or room - o < 6 * n + 64:
                                break
                            if program[pc + 6]:
                                if not _is_utf8(buf, at, at + n):
                                    break
                                o = _quoted(out, o, buf, at, n)
                            else:
                                out[o] = 34
                                o = _base64(out, o + 1, buf, at, n, std, True)
                                out[o] = 34
                                o += 1
                            at += n
                        out[o] = 44
                        o += 1
                    elif op == 3:  # UUID
                        if value_end - at < 16:
                            break
                        out[o] = 34
                        o = _base64(out, o + 1, buf, at, 16, url, False)
                        out[o] = 34
                        out[o + 1] = 44
                        o += 2
                        at += 16
                    elif op == 7 or op == 8 or op == 16:  # COMPACT_ARRAY, ARRAY, FIXED_ARRAY
                        if op == 8:
                            if value_end - at < 4:
                                break
                            n = _i32(buf, at)
                            at += 4
                        else:
                            packed = _varint(buf, at, value_end, 5)
                            if packed == 0:
                                break
                            n = (packed >> 4) - 1
                            at += packed & 15
                        if (n < 0 and defaults[i] == 2) or (n == 0 and defaults[i] == 3):
                            break
                        if n < 0:
                            if program[pc + 2] < 0 or n < -1:
                                break
                            out[o] = 110
                            out[o + 1] = 117
                            out[o + 2] = 108
                            out[o + 3] = 108
                            out[o + 4] = 44
                            o += 5
                            if op != 16:
                                pc = program[pc + 7]
                                continue
                        else:
                            out[o] = 91
                            o += 1
                            if op == 16:
                                if n > (value_end - at) // 4 or room - o < 12 * n + 64:
                                    break
                                for k in range(n):
                                    v = _i32(buf, at)
                                    if program[pc + 6] == 1 and v < 0:
                                        v = v + two32
                                    o = _decimal(out, o, v)
                                    out[o] = 44
                                    o += 1
                                    at += 4
                            else:
                                if n > value_end - at:
                                    break
                                if n > 0:
                                    stack[sp] = n
                                    sp += 4
                                    if program[pc + 6]:
                                        out[o] = 123
                                        o += 1
                                    pc += 8
                                    continue
                            if out[o - 1] == 44:
                                o -= 1
                            out[o] = 93
                            out[o + 1] = 44
                            o += 2
                            if op != 16:
                                pc = program[pc + 7]
                                continue
                    elif op == 9:  # NEXT
                        if program[pc + 6]:
                            if out[o - 1] == 44:
                                o -= 1
                            out[o] = 125
                            out[o + 1] = 44
                            o += 2
                        stack[sp - 4] -= 1
                        if stack[sp - 4] > 0:
                            if program[pc + 6]:
                                out[o] = 123
                                o += 1
                            pc = program[pc + 7]
                            continue
                        sp -= 4
                        out[o - 1] = 93
                        out[o] = 44
                        o += 1
                    elif op == 10:  # TAGS
                        packed = _varint(buf, at, value_end, 5)
                        if packed == 0:
                            break
                        n = packed >> 4
                        at += packed & 15
                        if n == 0:
                            pc = program[pc + 7]
                            continue
                        if n > value_end - at:
                            break
                        stack[sp] = n
                        stack[sp + 1] = -1
                        stack[sp + 2] = at
                        sp += 4
                        pc = program[pc + 6]
                        continue
                    elif op == 11:  # TAG_END
                        if at != stack[sp - 2]:
                            break
                        if stack[sp - 4] == 0:
                            sp -= 4
                            pc += 8
                            continue
                        stack[sp - 4] -= 1
                        packed = _varint(buf, at, value_end, 5)
                        if packed == 0:
                            break
                        v = packed >> 4
                        at += packed & 15
                        packed = _varint(buf, at, value_end, 5)
                        if packed == 0:
                            break
                        n = packed >> 4
                        at += packed & 15
                        if v <= stack[sp - 3] or n > value_end - at:
                            break
                        stack[sp - 3] = v
                        stack[sp - 2] = at + n
                        k = -1
                        for i in range(program[pc + 2]):
                            if program[program[pc + 3] + 2 * i] == v:
                                k = program[program[pc + 3] + 2 * i + 1]
                        if k < 0:
                            at += n
                            continue
                        pc = k
                        continue
                    elif op == 2:  # BOOL
                        if value_end - at < 1 or defaults[i] != 0:
                            break
                        if buf[at] != 0:
                            o = _copy(out, o, fixed_text, text_at[7], 5)
                        else:
                            o = _copy(out, o, fixed_text, text_at[8], 6)
                        at += 1
                    elif op == 17:  # JUMP
                        pc = program[pc + 7]
                        continue
                    elif op == 0:  # END, or the head of a program
                        if program[pc + 7] == 0:
                            good = at == value_end
                            break
                    pc += 8
                if not good:
                    break
                if out[o - 1] == 44:
                    o -= 1
                out[o] = 125
                out[o + 1] = 125
                out[o + 2] = 125
                out[o + 3] = 10
                o += 4
                at = rec_end
            if not good or at != batch_end:
                o = done
                break
            done = o
            pos = batch_end
    return pos, done

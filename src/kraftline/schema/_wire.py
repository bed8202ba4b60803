"""Kafka's wire types, read from and written to a buffer: the hot loop under every message.

Cython in pure-Python mode: compiled where there is a C compiler, the same file interpreted where
not. Every read is checked against the end of the buffer before anything is allocated.
"""

from __future__ import annotations

from struct import Struct, unpack_from

from kraftline.errors import Corrupt, Truncated
from kraftline.schema.lent import Lent
from kraftline.schema.uuids import Uuid

try:
    import cython
except ImportError:  # only where nothing is compiled anyway
    from kraftline.schema import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_Resize
    from cython.cimports.cpython.ref import Py_INCREF
    from cython.cimports.cpython.tuple import PyTuple_New, PyTuple_SET_ITEM
    from cython.cimports.libc.string import memcmp, memcpy

COMPILED = cython.compiled

_INT32, _INT64, _FLOAT64 = Struct(">i"), Struct(">q"), Struct(">d")
_new_uuid = bytes.__new__
_MAX_STRING = 0x7FFF

# What `Reader.fields` and `Reader.tagged` read for a code: one of these times four, plus 1 where a
# length is compact and 2 where there may be a null. `Reader._field` knows them by number.
KINDS = {
    name: number
    for number, name in enumerate(
        (
            "int32",
            "uuid",
            "int32_array",
            "string",
            "int64",
            "int16",
            "int8",
            "uuid_array",
            "string_array",
            "boolean",
            "blob",
            "int64_array",
            "uvarint",
            "uint16",
            "uint32",
            "float64",
        )
    )
}
NO_SUCH_TAG = 255
_NO_SUCH_TAG = cython.declare(cython.int, 255)

# Uuids repeat (a topic's partitions, a broker's directories), and making one costs more than
# finding it: the last one seen in each slot is kept, with its bytes and its text beside it.
_UUID_SLOTS = 1024
_uuid_keys: bytearray = bytearray(16 * _UUID_SLOTS)
_uuids: list = [_new_uuid(Uuid, bytes(16))] * _UUID_SLOTS
_uuid_texts: list = [None] * _UUID_SLOTS
_known_uuids: dict = {}  # the same when interpreted: by bytes
_known_texts: dict = {}

# So do short lists of brokers. A key is their bytes, and at 12 how many they are.
_SHORT_LIST = cython.declare(cython.Py_ssize_t, 3)
_list_keys: bytearray = bytearray(16 * _UUID_SLOTS)
_lists: list = [()] * _UUID_SLOTS


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _be16(b: cython.p_uchar, p: cython.Py_ssize_t) -> cython.int:
    if cython.compiled:
        v: cython.short = (b[p] << 8) | b[p + 1]
        return v
    return int.from_bytes(b[p : p + 2], "big", signed=True)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _be32(b: cython.p_uchar, p: cython.Py_ssize_t) -> cython.int:
    if cython.compiled:
        top: cython.uint = b[p]
        v: cython.int = (top << 24) | (b[p + 1] << 16) | (b[p + 2] << 8) | b[p + 3]
        return v
    return int.from_bytes(b[p : p + 4], "big", signed=True)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _be64(b: cython.p_uchar, p: cython.Py_ssize_t) -> cython.longlong:
    if cython.compiled:
        v: cython.ulonglong = 0
        i: cython.Py_ssize_t
        for i in range(8):
            v = (v << 8) | b[p + i]
        signed: cython.longlong = v
        return signed
    return int.from_bytes(b[p : p + 8], "big", signed=True)


@cython.cfunc
def _uuid_slot(b: cython.p_uchar, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The slot that holds these sixteen bytes, filled if it held others."""
    keys: cython.p_uchar = _uuid_keys
    slot: cython.Py_ssize_t = (b[p] ^ (b[p + 15] << 2)) & 1023
    k: cython.Py_ssize_t = slot * 16
    if memcmp(keys + k, b + p, 16) == 0:
        return slot
    _uuids[slot] = _new_uuid(Uuid, b[p : p + 16])
    _uuid_texts[slot] = None
    memcpy(keys + k, b + p, 16)
    return slot


@cython.cfunc
def _short_list(b: cython.p_uchar, p: cython.Py_ssize_t, n: cython.Py_ssize_t) -> object:
    """One to three int32s, the same tuple as the last one with these values in their slot."""
    keys: cython.p_uchar = _list_keys
    size: cython.Py_ssize_t = 4 * n
    slot: cython.Py_ssize_t = n
    i: cython.Py_ssize_t
    for i in range(n):
        slot = (slot * 37 + b[p + 4 * i + 3]) & 1023
    k: cython.Py_ssize_t = slot * 16
    if keys[k + 12] == n and memcmp(keys + k, b + p, size) == 0:
        return _lists[slot]
    if n == 1:
        made: tuple = (_be32(b, p),)
    elif n == 2:
        made = (_be32(b, p), _be32(b, p + 4))
    else:
        made = (_be32(b, p), _be32(b, p + 4), _be32(b, p + 8))
    _lists[slot] = made
    memcpy(keys + k, b + p, size)
    keys[k + 12] = n
    return made


@cython.cfunc
def _uuid_at(b: cython.p_uchar, p: cython.Py_ssize_t) -> object:
    if cython.compiled:
        return _uuids[_uuid_slot(b, p)]
    raw = bytes(b[p : p + 16])
    found = _known_uuids.get(raw)
    if found is None:
        if len(_known_uuids) >= _UUID_SLOTS:
            _known_uuids.clear()
        found = _known_uuids[raw] = _new_uuid(Uuid, raw)
    return found


@cython.cfunc
def _uuid_text_at(b: cython.p_uchar, p: cython.Py_ssize_t) -> object:
    if cython.compiled:
        slot: cython.Py_ssize_t = _uuid_slot(b, p)
        text = _uuid_texts[slot]
        if text is None:
            text = _uuid_texts[slot] = str(_uuids[slot])
        return text
    raw = bytes(b[p : p + 16])
    found = _known_texts.get(raw)
    if found is None:
        if len(_known_texts) >= _UUID_SLOTS:
            _known_texts.clear()
        found = _known_texts[raw] = str(_new_uuid(Uuid, raw))
    return found


@cython.final
@cython.cclass
class Reader:
    """A position in a buffer, and one method per wire type that reads there and moves on.

    `end` bounds every read. One reader serves a whole batch: `reset` moves it for nothing. Out of a
    memoryview, bytes (and records) come as views of it: whoever has them must be done with them
    before its owner writes there again.
    """

    data = cython.declare(object, visibility="readonly")
    buf = cython.declare(cython.p_uchar)
    view = cython.declare(cython.uchar[::1])  # what `buf` points into, where that is no bytes
    pos = cython.declare(cython.Py_ssize_t, visibility="public")
    end = cython.declare(cython.Py_ssize_t, visibility="readonly")

    def __init__(self, data, pos: cython.Py_ssize_t = 0, end=None) -> None:
        self._hold(data)
        self.reset(pos, len(data) if end is None else end)

    @cython.cfunc
    def _hold(self, data) -> object:
        self.data = data
        if not cython.compiled:
            self.buf = data
        elif type(data) is memoryview:
            if len(data):
                self.view = data
                self.buf = cython.address(self.view[0])
        else:
            whole: bytes = data
            self.buf = whole
        return None

    def reset(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> None:
        """Read from `pos` up to `end` of the same buffer."""
        if not 0 <= pos <= end <= len(self.data):
            raise ValueError(f"{pos}..{end} is not within {len(self.data)} bytes")
        self.pos = pos
        self.end = end

    def load(self, data: bytes) -> None:
        """Read all of another buffer."""
        self._hold(data)
        self.pos = 0
        self.end = len(data)

    @cython.cfunc
    def _short(self, need: cython.longlong) -> object:
        raise Truncated(
            f"{need} bytes wanted where {self.end - self.pos} are left", position=self.pos
        )

    @cython.cfunc
    def _take(self, n: cython.longlong) -> cython.Py_ssize_t:
        """The position of the next n bytes, which are there."""
        p: cython.Py_ssize_t = self.pos
        if self.end - p < n:
            self._short(n)
        self.pos = p + n
        return p

    # Numbers

    def boolean(self) -> bool:
        return self.buf[self._take(1)] != 0

    def int8(self) -> int:
        v: cython.int = self.buf[self._take(1)]
        return v - 256 if v > 127 else v

    def int16(self) -> int:
        return _be16(self.buf, self._take(2))

    def uint16(self) -> int:
        return _be16(self.buf, self._take(2)) & 0xFFFF

    def int32(self) -> int:
        if not cython.compiled:
            p = self.pos
            if self.end - p < 4:
                self._short(4)
            self.pos = p + 4
            return _INT32.unpack_from(self.buf, p)[0]
        return _be32(self.buf, self._take(4))

    def uint32(self) -> int:
        v: cython.longlong = _be32(self.buf, self._take(4))
        return v if v >= 0 else v + 0x7FFFFFFF + 0x7FFFFFFF + 2

    def int64(self) -> int:
        if not cython.compiled:
            p = self.pos
            if self.end - p < 8:
                self._short(8)
            self.pos = p + 8
            return _INT64.unpack_from(self.buf, p)[0]
        return _be64(self.buf, self._take(8))

    def float64(self) -> float:
        p: cython.Py_ssize_t = self._take(8)
        return _FLOAT64.unpack(self.buf[p : p + 8])[0]

    @cython.cfunc
    def _uvarint(self) -> cython.longlong:
        p: cython.Py_ssize_t = self.pos
        if p >= self.end:
            self._short(1)
        b: cython.int = self.buf[p]
        if b < 128:
            self.pos = p + 1
            return b
        v: cython.longlong = b & 127
        shift: cython.int = 7
        while True:
            p += 1
            if p >= self.end:
                self._short(p - self.pos + 1)
            b = self.buf[p]
            if shift == 28 and b > 15:
                raise Corrupt("unsigned varint of more than 32 bits", position=self.pos)
            part: cython.longlong = b & 127
            v |= part << shift
            if b < 128:
                self.pos = p + 1
                return v
            shift += 7

    def uvarint(self) -> int:
        return self._uvarint()

    def varint(self) -> int:
        v: cython.longlong = self._uvarint()
        return (v >> 1) ^ -(v & 1)

    def varlong(self) -> int:
        v = 0
        p: cython.Py_ssize_t = self.pos
        shift: cython.int = 0
        while True:
            if p >= self.end:
                self._short(p - self.pos + 1)
            b = self.buf[p]
            p += 1
            if shift == 63 and b > 1:
                raise Corrupt("varint of more than 64 bits", position=self.pos)
            v |= (b & 127) << shift
            if b < 128:
                self.pos = p
                return (v >> 1) ^ -(v & 1)
            shift += 7

    # Uuids, strings, bytes

    def uuid(self) -> Uuid:
        return _uuid_at(self.buf, self._take(16))

    def uuid_text(self) -> str:
        return _uuid_text_at(self.buf, self._take(16))

    @cython.cfunc
    def _length(self, compact: cython.bint, wide: cython.bint) -> cython.longlong:
        """A length in front of a string or bytes; -1 for null."""
        if compact:
            return self._uvarint() - 1
        if wide:
            return _be32(self.buf, self._take(4))
        return _be16(self.buf, self._take(2))

    @cython.cfunc
    def _text(self, n: cython.longlong, nullable: cython.bint) -> object:
        if n < 0:
            if nullable and n == -1:
                return None
            raise Corrupt(f"a string of length {n}", position=self.pos)
        if n > _MAX_STRING:
            raise Corrupt(f"a string of length {n}, over {_MAX_STRING}", position=self.pos)
        p: cython.Py_ssize_t = self._take(n)
        try:
            if cython.compiled:
                return self.buf[p : p + n].decode("utf-8")
            return str(self.buf[p : p + n], "utf-8")
        except UnicodeDecodeError as error:
            raise Corrupt(f"a string is not UTF-8: {error.reason}", position=p) from None

    @cython.cfunc
    def _blob(self, n: cython.longlong, nullable: cython.bint) -> object:
        if n < 0:
            if nullable and n == -1:
                return None
            raise Corrupt(f"bytes of length {n}", position=self.pos)
        p: cython.Py_ssize_t = self._take(n)
        if type(self.data) is memoryview:
            return self.data[p : p + n]
        return self.buf[p : p + n]

    def string(self) -> str:
        return self._text(self._length(False, False), False)

    def nullable_string(self) -> str | None:
        return self._text(self._length(False, False), True)

    def compact_string(self) -> str:
        return self._text(self._uvarint() - 1, False)

    def compact_nullable_string(self) -> str | None:
        return self._text(self._uvarint() - 1, True)

    def blob(self) -> object:
        return self._blob(self._length(False, True), False)

    def nullable_blob(self) -> object:
        return self._blob(self._length(False, True), True)

    def compact_blob(self) -> object:
        return self._blob(self._uvarint() - 1, False)

    def compact_nullable_blob(self) -> object:
        return self._blob(self._uvarint() - 1, True)

    def raw(self, n: cython.longlong) -> bytes:
        """The next n bytes as they are."""
        if n < 0:
            raise Corrupt(f"bytes of length {n}", position=self.pos)
        p: cython.Py_ssize_t = self._take(n)
        return self.buf[p : p + n] if cython.compiled else bytes(self.buf[p : p + n])

    # Arrays

    @cython.cfunc
    def _count(
        self, compact: cython.bint, nullable: cython.bint, smallest: cython.longlong
    ) -> cython.longlong:
        """How many elements follow, each of at least `smallest` bytes; -1 for null."""
        n: cython.longlong = self._length(compact, True)
        if n < 0:
            if nullable and n == -1:
                return n
            raise Corrupt(f"an array of {n} elements", position=self.pos)
        if n * smallest > self.end - self.pos:
            raise Truncated(
                f"an array of {n} elements where {self.end - self.pos} bytes are left",
                position=self.pos,
            )
        return n

    def array_length(self, smallest: cython.longlong) -> int:
        return self._count(False, False, smallest)

    def nullable_array_length(self, smallest: cython.longlong) -> int:
        return self._count(False, True, smallest)

    def compact_array_length(self, smallest: cython.longlong) -> int:
        return self._count(True, False, smallest)

    def compact_nullable_array_length(self, smallest: cython.longlong) -> int:
        return self._count(True, True, smallest)

    @cython.cfunc
    def _int32s(self, n: cython.longlong) -> object:
        if n < 0:
            return None
        b: cython.p_uchar = self.buf
        p: cython.Py_ssize_t = self._take(4 * n)
        if not cython.compiled:
            return unpack_from(f">{n}i", b, p)
        if n == 0:
            return ()
        if n <= _SHORT_LIST:
            return _short_list(b, p, n)
        items: list = []
        i: cython.Py_ssize_t
        for i in range(n):
            items.append(_be32(b, p + 4 * i))
        return tuple(items)

    @cython.cfunc
    def _int64s(self, n: cython.longlong) -> object:
        if n < 0:
            return None
        b: cython.p_uchar = self.buf
        p: cython.Py_ssize_t = self._take(8 * n)
        if not cython.compiled:
            return unpack_from(f">{n}q", b, p)
        items: list = []
        i: cython.Py_ssize_t
        for i in range(n):
            items.append(_be64(b, p + 8 * i))
        return tuple(items)

    @cython.cfunc
    def _uuid_tuple(self, n: cython.longlong) -> object:
        if n < 0:
            return None
        b: cython.p_uchar = self.buf
        p: cython.Py_ssize_t = self._take(16 * n)
        if n == 3:
            return (_uuid_at(b, p), _uuid_at(b, p + 16), _uuid_at(b, p + 32))
        items: list = []
        i: cython.Py_ssize_t
        for i in range(n):
            items.append(_uuid_at(b, p + 16 * i))
        return tuple(items)

    @cython.cfunc
    def _uuid_texts(self, n: cython.longlong) -> object:
        if n < 0:
            return None
        b: cython.p_uchar = self.buf
        p: cython.Py_ssize_t = self._take(16 * n)
        items: list = []
        i: cython.Py_ssize_t
        for i in range(n):
            items.append(_uuid_text_at(b, p + 16 * i))
        return items

    @cython.cfunc
    def _strings(self, n: cython.longlong, compact: cython.bint) -> object:
        if n < 0:
            return None
        items: list = []
        i: cython.Py_ssize_t
        for i in range(n):
            items.append(self._text(self._length(compact, False), False))
        return tuple(items)

    def int32_array(self) -> tuple:
        return self._int32s(self._count(False, False, 4))

    def nullable_int32_array(self) -> tuple | None:
        return self._int32s(self._count(False, True, 4))

    def compact_int32_array(self) -> tuple:
        return self._int32s(self._count(True, False, 4))

    def compact_nullable_int32_array(self) -> tuple | None:
        return self._int32s(self._count(True, True, 4))

    def int64_array(self) -> tuple:
        return self._int64s(self._count(False, False, 8))

    def nullable_int64_array(self) -> tuple | None:
        return self._int64s(self._count(False, True, 8))

    def compact_int64_array(self) -> tuple:
        return self._int64s(self._count(True, False, 8))

    def compact_nullable_int64_array(self) -> tuple | None:
        return self._int64s(self._count(True, True, 8))

    def uuid_array(self) -> tuple:
        return self._uuid_tuple(self._count(False, False, 16))

    def nullable_uuid_array(self) -> tuple | None:
        return self._uuid_tuple(self._count(False, True, 16))

    def compact_uuid_array(self) -> tuple:
        return self._uuid_tuple(self._count(True, False, 16))

    def compact_nullable_uuid_array(self) -> tuple | None:
        return self._uuid_tuple(self._count(True, True, 16))

    def uuid_texts(self) -> list:
        return self._uuid_texts(self._count(False, False, 16))

    def nullable_uuid_texts(self) -> list | None:
        return self._uuid_texts(self._count(False, True, 16))

    def compact_uuid_texts(self) -> list:
        return self._uuid_texts(self._count(True, False, 16))

    def compact_nullable_uuid_texts(self) -> list | None:
        return self._uuid_texts(self._count(True, True, 16))

    def string_array(self) -> tuple:
        return self._strings(self._count(False, False, 2), False)

    def nullable_string_array(self) -> tuple | None:
        return self._strings(self._count(False, True, 2), False)

    def compact_string_array(self) -> tuple:
        return self._strings(self._count(True, False, 1), True)

    def compact_nullable_string_array(self) -> tuple | None:
        return self._strings(self._count(True, True, 1), True)

    # Many fields in one call

    @cython.cfunc
    def _field(self, code: cython.int) -> object:
        kind: cython.int = code >> 2
        compact: cython.bint = code & 1
        nullable: cython.bint = code & 2
        if kind == 0:
            return _be32(self.buf, self._take(4))
        if kind == 1:
            return _uuid_at(self.buf, self._take(16))
        if kind == 2:
            return self._int32s(self._count(compact, nullable, 4))
        if kind == 3:
            return self._text(self._length(compact, False), nullable)
        if kind == 4:
            return _be64(self.buf, self._take(8))
        if kind == 5:
            return _be16(self.buf, self._take(2))
        if kind == 6:
            return self.int8()
        if kind == 7:
            return self._uuid_tuple(self._count(compact, nullable, 16))
        if kind == 8:
            return self._strings(self._count(compact, nullable, 1 if compact else 2), compact)
        if kind == 9:
            return self.boolean()
        if kind == 10:
            return self._blob(self._length(compact, True), nullable)
        if kind == 11:
            return self._int64s(self._count(compact, nullable, 8))
        if kind == 12:
            return self._uvarint()
        if kind == 13:
            return self.uint16()
        if kind == 14:
            return self.uint32()
        return self.float64()

    def fields(self, codes: bytes) -> tuple:
        """A value for each of these codes (see `KINDS`), one after the other."""
        if not cython.compiled:
            return tuple([self._field(code) for code in codes])
        n: cython.Py_ssize_t = len(codes)
        code: cython.p_uchar = codes
        i: cython.Py_ssize_t
        values: tuple = PyTuple_New(n)
        for i in range(n):
            value = self._field(code[i])
            Py_INCREF(value)  # which the tuple takes over
            PyTuple_SET_ITEM(values, i, value)
        return values

    def tagged(self, count: cython.longlong, codes: bytes, defaults: tuple) -> list:
        """The values of `count` tagged fields, in the order of their tags, or their defaults.

        A code stands at the place of its tag. The last of the values is a list of tag and bytes of
        each field that no code is for, or None.
        """
        values: list = list(defaults)
        unknown = None
        known: cython.Py_ssize_t = len(codes)
        code: cython.p_uchar = codes
        while count > 0:
            tag: cython.longlong = self._uvarint()
            end: cython.Py_ssize_t = self._tag_end()
            if tag < known and code[tag] != _NO_SUCH_TAG:
                values[tag] = self._field(code[tag])
            else:
                if unknown is None:
                    unknown = []
                unknown.append((tag, self.raw(end - self.pos)))
            if self.pos != end:
                self.tag_done(end)
            count -= 1
        values.append(unknown)
        return values

    # Frames

    def tag_end(self) -> int:
        """Reads the size of a tagged field; where the field must end."""
        return self._tag_end()

    @cython.cfunc
    def _tag_end(self) -> cython.Py_ssize_t:
        n: cython.longlong = self._uvarint()
        if self.end - self.pos < n:
            self._short(n)
        return self.pos + n

    def tag_done(self, end: cython.Py_ssize_t) -> None:
        """A tagged field must fill the size that was announced."""
        if self.pos != end:
            raise Corrupt(
                f"a tagged field ends at {self.pos}, but its size says {end}", position=self.pos
            )

    def finish(self) -> None:
        """Nothing may be left."""
        if self.pos != self.end:
            left = self.end - self.pos
            raise Corrupt(f"{left} byte{'s' * (left > 1)} left over", position=self.pos)

    def metadata_records(self, starts, ends, readers: dict, missing) -> list:
        """The metadata records whose values lie from these places up to those. `readers` has a
        function for each type and version, as `metadata_frame` gives them; `missing` finds one
        that is not there yet, of this reader and frame."""
        records: list = []
        known: cython.longlong = -2
        frame: cython.longlong
        end: cython.Py_ssize_t
        read = None
        for start, end in zip(starts, ends, strict=True):
            frame = self._frame(start, end)
            if frame != known:
                read = readers.get(frame)
                if read is None:
                    read = missing(self, frame)
                known = frame
            records.append(read(self))
            if self.pos != end:
                self.finish()
        return records

    def metadata_frame(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> int:
        """Moves to a metadata record and reads the three varints before it: type << 16 | version.

        -1 for a frame version other than 1: the caller has the words for that.
        """
        return self._frame(start, end)

    @cython.cfunc
    def _frame(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
        if not 0 <= start <= end <= len(self.data):
            self.reset(start, end)
        self.pos = start
        self.end = end
        frame: cython.longlong = self._uvarint()
        if frame != 1:
            return -1
        kind: cython.longlong = self._uvarint()
        version: cython.longlong = self._uvarint()
        if kind > 0x7FFF or version > 0x7FFF:
            raise Corrupt(f"record type {kind}, version {version}", position=self.pos)
        return (kind << 16) | version


@cython.final
@cython.cclass
class Writer:
    """A buffer that grows, and one method per wire type that writes at its end.

    A value of a wrong type or out of range raises TypeError, OverflowError or the like; whoever
    knows the message's name (`codec`) makes NotRepresentable of it.
    """

    data = cython.declare(bytearray)
    buf = cython.declare(cython.p_uchar)
    pos = cython.declare(cython.Py_ssize_t, visibility="readonly")
    room = cython.declare(cython.Py_ssize_t)
    lent = cython.declare(list)

    def __init__(self, room: cython.Py_ssize_t = 256) -> None:
        self.data = bytearray(room)
        self.buf = self.data
        self.pos = 0
        self.room = room
        self.lent = []

    def clear(self) -> None:
        """Start again, in the same buffer."""
        self.pos = 0
        self.lent = []

    def parts(self) -> list:
        """What was written, cut where bytes were lent: bytes and sources in turn."""
        whole = self.getvalue()
        found = []
        at = 0
        for cut, source in self.lent:
            found.append(whole[at:cut])
            found.append(source)
            at = cut
        found.append(whole[at:])
        return found

    def getvalue(self) -> bytes:
        if cython.compiled:
            return self.buf[: self.pos]
        return bytes(memoryview(self.data)[: self.pos])

    @cython.cfunc
    def _place(self, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the next n bytes go; there is room for them."""
        p: cython.Py_ssize_t = self.pos
        if p + n > self.room:
            more: cython.Py_ssize_t = self.room + n
            if cython.compiled:
                PyByteArray_Resize(self.data, self.room + more)
            else:
                self.data.extend(bytes(more))
            self.room += more
            self.buf = self.data
        self.pos = p + n
        return p

    @cython.cfunc
    def _big(self, v: cython.longlong, n: cython.Py_ssize_t) -> object:
        """The low n bytes of v, highest first."""
        p: cython.Py_ssize_t = self._place(n)
        i: cython.Py_ssize_t
        b: cython.p_uchar = self.buf
        for i in range(n - 1, -1, -1):
            b[p + i] = v & 255
            v >>= 8
        return None

    # Numbers

    def boolean(self, v: cython.bint) -> None:
        self._big(1 if v else 0, 1)

    def int8(self, v: cython.longlong) -> None:
        if not -0x80 <= v <= 0x7F:
            raise OverflowError(f"{v} does not fit into an int8")
        self._big(v, 1)

    def int16(self, v: cython.longlong) -> None:
        if not -0x8000 <= v <= 0x7FFF:
            raise OverflowError(f"{v} does not fit into an int16")
        self._big(v, 2)

    def uint16(self, v: cython.longlong) -> None:
        if not 0 <= v <= 0xFFFF:
            raise OverflowError(f"{v} does not fit into a uint16")
        self._big(v, 2)

    @cython.cfunc
    def _int32(self, v: cython.longlong) -> object:
        if not -0x7FFFFFFF - 1 <= v <= 0x7FFFFFFF:
            raise OverflowError(f"{v} does not fit into an int32")
        return self._big(v, 4)

    def int32(self, v: cython.longlong) -> None:
        self._int32(v)

    def uint32(self, v: cython.longlong) -> None:
        if v < 0 or v >> 32:
            raise OverflowError(f"{v} does not fit into a uint32")
        self._big(v, 4)

    @cython.cfunc
    def _int64(self, v: cython.longlong) -> object:
        if not cython.compiled and v.bit_length() > 63 and v != -(1 << 63):
            raise OverflowError(f"{v} does not fit into an int64")
        return self._big(v, 8)

    def int64(self, v: cython.longlong) -> None:
        self._int64(v)

    def float64(self, v: float) -> None:
        self._raw(_FLOAT64.pack(v))

    @cython.cfunc
    def _uvarint(self, v: cython.longlong) -> object:
        p: cython.Py_ssize_t
        while v > 127:
            p = self._place(1)
            self.buf[p] = (v & 127) | 128
            v >>= 7
        p = self._place(1)
        self.buf[p] = v
        return None

    def uvarint(self, v: cython.longlong) -> None:
        if v < 0 or v >> 32:
            raise OverflowError(f"{v} does not fit into an unsigned varint")
        self._uvarint(v)

    # Uuids, strings, bytes

    @cython.cfunc
    def _raw(self, v: bytes) -> object:
        n: cython.Py_ssize_t = len(v)
        p: cython.Py_ssize_t = self._place(n)
        if cython.compiled:
            source: cython.p_uchar = v
            target: cython.p_uchar = self.buf
            i: cython.Py_ssize_t
            for i in range(n):
                target[p + i] = source[i]
        else:
            self.data[p : p + n] = v
        return None

    def raw(self, v) -> None:
        self._raw(_plain(v))

    @cython.cfunc
    def _uuid(self, v) -> object:
        if len(v) != 16:
            raise OverflowError(f"a uuid of {len(v)} bytes")
        return self._raw(_plain(v))

    def uuid(self, v) -> None:
        self._uuid(v)

    @cython.cfunc
    def _head(self, n: cython.longlong, compact: cython.bint, wide: cython.bint) -> object:
        """The length in front of a string, bytes or an array; -1 for null."""
        if compact:
            return self._uvarint(n + 1)
        if wide:
            return self._int32(n)
        return self._big(n, 2)

    @cython.cfunc
    def _text(self, v: str, compact: cython.bint) -> object:
        raw: bytes = v.encode("utf-8")
        n: cython.Py_ssize_t = len(raw)
        if n > _MAX_STRING:
            raise OverflowError(f"a string of {n} bytes, over {_MAX_STRING}")
        self._head(n, compact, False)
        return self._raw(raw)

    @cython.cfunc
    def _blob(self, v, compact: cython.bint) -> object:
        if type(v) is Lent:
            self._head(v.length, compact, True)
            self.lent.append((self.pos, v.source))
            return None
        raw: bytes = _plain(v)
        self._head(len(raw), compact, True)
        return self._raw(raw)

    def string(self, v) -> None:
        self._text(v, False)

    def nullable_string(self, v) -> None:
        self._head(-1, False, False) if v is None else self._text(v, False)

    def compact_string(self, v) -> None:
        self._text(v, True)

    def compact_nullable_string(self, v) -> None:
        self._head(-1, True, False) if v is None else self._text(v, True)

    def blob(self, v) -> None:
        self._blob(v, False)

    def nullable_blob(self, v) -> None:
        self._head(-1, False, True) if v is None else self._blob(v, False)

    def compact_blob(self, v) -> None:
        self._blob(v, True)

    def compact_nullable_blob(self, v) -> None:
        self._head(-1, True, True) if v is None else self._blob(v, True)

    # Arrays

    def array_length(self, n: cython.longlong) -> None:
        """-1 for a null array."""
        self._int32(n)

    def compact_array_length(self, n: cython.longlong) -> None:
        self._uvarint(n + 1)

    @cython.cfunc
    def _int32s(self, v, compact: cython.bint) -> object:
        self._head(len(v), compact, True)
        for item in v:
            self._int32(item)
        return None

    @cython.cfunc
    def _int64s(self, v, compact: cython.bint) -> object:
        self._head(len(v), compact, True)
        for item in v:
            self._int64(item)
        return None

    @cython.cfunc
    def _uuids(self, v, compact: cython.bint) -> object:
        self._head(len(v), compact, True)
        for item in v:
            self._uuid(item)
        return None

    @cython.cfunc
    def _strings(self, v, compact: cython.bint) -> object:
        self._head(len(v), compact, True)
        for item in v:
            self._text(item, compact)
        return None

    def int32_array(self, v) -> None:
        self._int32s(v, False)

    def compact_int32_array(self, v) -> None:
        self._int32s(v, True)

    def int64_array(self, v) -> None:
        self._int64s(v, False)

    def compact_int64_array(self, v) -> None:
        self._int64s(v, True)

    def uuid_array(self, v) -> None:
        self._uuids(v, False)

    def compact_uuid_array(self, v) -> None:
        self._uuids(v, True)

    def string_array(self, v) -> None:
        self._strings(v, False)

    def compact_string_array(self, v) -> None:
        self._strings(v, True)

    # Tagged fields

    def begin_tag(self, tag: cython.longlong) -> int:
        """Starts a tagged field; `end_tag` wants what this returns."""
        self._uvarint(tag)
        return self._place(1)

    def end_tag(self, at: cython.Py_ssize_t) -> None:
        """Puts the size in front of what was written since `begin_tag`."""
        n: cython.Py_ssize_t = self.pos - at - 1
        if n < 128:
            self.buf[at] = n
            return
        body: bytes = bytes(self.data[at + 1 : self.pos])
        self.pos = at
        self._uvarint(n)
        self._raw(body)

    def raw_tags(self, tags, at: cython.Py_ssize_t, below: cython.longlong) -> int:
        """Writes the unknown tags from index `at` that come before tag `below` (-1: all).

        Returns the index of the first one left.
        """
        n: cython.Py_ssize_t = len(tags)
        while at < n:
            tag, data = tags[at]
            if tag == below or (at > 0 and tag <= tags[at - 1][0]):
                raise OverflowError(f"unknown tag {tag} is known to this version or out of order")
            if 0 <= below < tag:
                break
            self.uvarint(tag)
            self._uvarint(len(data))
            self._raw(_plain(data))
            at += 1
        return at


@cython.cfunc
def _plain(v) -> bytes:
    """Plain bytes out of anything bytes-like, a subclass such as Uuid included."""
    if type(v) is bytes:
        return v
    if isinstance(v, bytes):
        return bytes.__getitem__(v, _ALL)
    return bytes(memoryview(v))


_ALL = slice(None)

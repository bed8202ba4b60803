"""The four codecs, with a limit: nothing is ever decompressed beyond it.

What is accepted follows Kafka's own readers: concatenated gzip members, zstd frames and xerial
chunks are one stream; what follows the last gzip member, or the end mark of an lz4 frame, is not
looked at; an lz4 frame must have independent blocks. The lz4 frame of a v0 message set carries a
header checksum that old clients computed over the wrong bytes: it is not checked there, and is
written wrongly in the same way.
"""

from __future__ import annotations

import zlib
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Final, NoReturn

import cramjam
import xxhash

from kraftline.errors import Corrupt, TooLarge, Unsupported
from kraftline.records.record import Bytes, Codec

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor

    from kraftline.records.zstd_of_c import Frames

DEFAULT_LIMIT: Final = 128 * 1024 * 1024

_FULL = "failed to write whole buffer"  # how cramjam says that the output does not fit
_START = 256 * 1024
_KEEP = 16 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2
_XERIAL_BLOCK = 32 * 1024
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x80000000


@cache
def _zstandard() -> ModuleType:
    """Imported when the first zstd batch is met: it takes 14 ms that few files need."""
    import zstandard

    return zstandard


class Scratch:
    """What decompression needs, kept warm from one batch to the next: memory to write into, and
    zstd's own tables. One thread's alone."""

    __slots__ = ("_frame", "_frames", "view")

    def __init__(self, size: int = _START) -> None:
        self.view = memoryview(bytearray(size))
        self._frame: ZstdDecompressor | None = None
        self._frames: Frames | None = None

    @property
    def frames(self) -> Frames:
        """How the kernel decompresses many zstd frames."""
        if self._frames is None:
            from kraftline.records.zstd_of_c import Frames

            self._frames = Frames()
        return self._frames

    def frame(self, data: memoryview, room: int) -> bytes | None:
        """What a single zstd frame of at most `room` bytes holds; None for anything else."""
        if self._frame is None:
            self._frame = _zstandard().ZstdDecompressor()
        try:
            return self._frame.decompress(data, room, False, False)
        except _zstandard().ZstdError:
            return None

    def make_room(self, used: int, more: int) -> None:
        """Room for `more` bytes behind the first `used`, which stay."""
        if len(self.view) - used >= more:
            return
        view = memoryview(bytearray(max(2 * len(self.view), used + more)))
        view[:used] = self.view[:used]
        self.view = view

    def shrink(self, size: int = _KEEP) -> None:
        """Give back what one giant batch needed."""
        if len(self.view) > size:
            self.view = memoryview(bytearray(_START))


def decompress(
    codec: int,
    data: Bytes,
    *,
    limit: int = DEFAULT_LIMIT,
    magic: int = 2,
    scratch: Scratch | None = None,
) -> memoryview:
    """`data` decompressed: a view of `scratch`, good until the scratch is used again."""
    scratch = Scratch() if scratch is None else scratch
    end = decompress_behind(codec, data, scratch, 0, limit=limit, magic=magic)
    return scratch.view[:end]


def decompress_behind(
    codec: int, data: Bytes, scratch: Scratch, used: int, *, limit: int, magic: int = 2
) -> int:
    """Decompress into `scratch` behind its first `used` bytes; returns where the result ends."""
    view = memoryview(data)
    if codec == Codec.ZSTD:
        return _unzstd(view, scratch, used, limit)
    if codec == Codec.LZ4:
        return _unlz4(view, scratch, used, limit, magic)
    if codec == Codec.SNAPPY:
        return _unsnappy(view, scratch, used, limit)
    if codec == Codec.GZIP:
        return _gunzip(view, scratch, used, limit)
    if codec == Codec.NONE:
        return _append(view, scratch, used, limit)
    raise Unsupported(f"compression codec {codec} is not known")


def _too_large(limit: int) -> NoReturn:
    raise TooLarge(
        f"a compressed batch holds more than {limit:,} bytes",
        hint="raise the limit if the data can be trusted",
    )


def _append(data: memoryview, scratch: Scratch, used: int, limit: int) -> int:
    if len(data) > limit:
        _too_large(limit)
    scratch.make_room(used, len(data))
    scratch.view[used : used + len(data)] = data
    return used + len(data)


def _unzstd(data: memoryview, scratch: Scratch, used: int, limit: int) -> int:
    claim = _zstd_claim(data)
    if claim > limit:
        _too_large(limit)
    room = max(8 * len(data), 64 * 1024)
    if claim <= room <= limit:
        # Tables that are kept make it a third quicker than cramjam at the size of a batch (19 to
        # 27 microseconds for 16 KB); cramjam knows what several frames, or a broken one, mean.
        plain = scratch.frame(data, room)
        if plain is not None:
            return _append(memoryview(plain), scratch, used, limit)
    while True:
        room = min(room, limit)
        scratch.make_room(used, room)
        room = min(limit, len(scratch.view) - used)
        try:
            written: int = cramjam.zstd.decompress_into(data, scratch.view[used : used + room])
        except cramjam.DecompressionError as problem:
            if _FULL not in str(problem):
                raise Corrupt(f"zstd: {problem}") from None
            if room >= limit:
                _too_large(limit)
            room *= 4
        else:
            return used + written


def _zstd_claim(data: memoryview) -> int:
    """The size that a zstd frame announces for itself; 0 when it announces none."""
    if len(data) < 6 or bytes(data[:4]) != b"\x28\xb5\x2f\xfd":
        return 0
    descriptor = data[4]
    single, width = descriptor & 0x20, (0, 2, 4, 8)[descriptor >> 6]
    if width == 0 and single:
        width = 1
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    return int.from_bytes(data[at : at + width], "little")


def _gunzip(data: memoryview, scratch: Scratch, used: int, limit: int) -> int:
    # zlib rather than cramjam: it stops at the limit by itself, can tell where a member ends,
    # and at the size of a batch it is the quicker of the two (36 to 49 microseconds for 16 KB).
    end = used
    rest: Bytes = data
    while True:
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(rest, limit - (end - used) + 1)
        except zlib.error as problem:
            raise Corrupt(f"gzip: {problem}") from None
        end = _append(memoryview(part), scratch, end, limit - (end - used))
        if not member.eof:
            raise Corrupt("gzip: the stream is cut")
        rest = member.unused_data
        if len(rest) < 18 or rest[:3] != b"\x1f\x8b\x08":
            return end


def _unsnappy(data: memoryview, scratch: Scratch, used: int, limit: int) -> int:
    if data[:8] != _XERIAL_MAGIC:
        return _unsnappy_block(data, scratch, used, limit)
    if len(data) < 16:
        raise Corrupt("snappy: the stream header is cut")
    if int.from_bytes(data[12:16], "big") > 1:
        raise Unsupported("snappy: the stream needs a newer reader")
    end, at = used, 16
    while len(data) - at >= 4:
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if data[at : at + 8] == _XERIAL_MAGIC:  # streams put one after the other
            at += 16
            continue
        at += 4
        if size < 0 or size > len(data) - at:
            raise Corrupt(f"snappy: a chunk of {size} bytes where {len(data) - at} are left")
        end = _unsnappy_block(data[at : at + size], scratch, end, limit - (end - used))
        at += size
    return end


def _unsnappy_block(data: memoryview, scratch: Scratch, used: int, limit: int) -> int:
    try:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > limit:
            _too_large(limit)
        # A copy of three bytes makes at most 64: a block that claims more is lying.
        if size > 32 * len(data):
            raise Corrupt(f"snappy: a block of {len(data)} bytes claims to hold {size}")
        scratch.make_room(used, size)
        room = scratch.view[used : used + size]
        written: int = cramjam.snappy.decompress_raw_into(data, room)
    except cramjam.DecompressionError as problem:
        raise Corrupt(f"snappy: {problem}") from None
    if written != size:
        raise Corrupt(f"snappy: a block holds {written} bytes instead of {size}")
    return used + size


def _unlz4(data: memoryview, scratch: Scratch, used: int, limit: int, magic: int) -> int:
    at, most, block_checksum, content_checksum = _lz4_header(data, magic)
    end = used
    while True:
        if len(data) - at < 4:
            raise Corrupt("lz4: the frame is cut")
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4
        stored, size = size & _LZ4_STORED, size & ~_LZ4_STORED
        if size == 0:
            if content_checksum and len(data) - at < 4:
                raise Corrupt("lz4: the frame is cut")
            return end
        if size > most:
            raise Corrupt(f"lz4: a block of {size} bytes where {most} are allowed")
        if size > len(data) - at:
            raise Corrupt("lz4: the frame is cut")
        block = data[at : at + size]
        at += size
        if stored:
            end = _append(block, scratch, end, limit - (end - used))
        else:
            end = _unlz4_block(block, scratch, end, limit - (end - used), most)
        if block_checksum:
            if data[at : at + 4] != xxhash.xxh32_intdigest(block).to_bytes(4, "little"):
                raise Corrupt("lz4: the checksum of a block is wrong")
            at += 4


def _lz4_header(data: memoryview, magic: int) -> tuple[int, int, bool, bool]:
    """(where the blocks start, their largest size, block checksums?, content checksum?)."""
    if len(data) < 7:
        raise Corrupt("lz4: the frame is cut")
    if data[:4] != _LZ4_MAGIC:
        raise Corrupt("lz4: not a frame")
    flags, descriptor = data[4], data[5]
    if flags & 0xC0 != 0x40 or flags & 0x03:
        raise Corrupt("lz4: an unknown frame version or flag")
    if not flags & 0x20:
        raise Corrupt("lz4: blocks that depend on each other are not allowed")
    size = descriptor >> 4
    if descriptor & 0x0F or not 4 <= size <= 7:
        raise Corrupt("lz4: an unknown block size")
    at = 14 if flags & 0x08 else 6
    if len(data) <= at:
        raise Corrupt("lz4: the frame is cut")
    if magic > 0 and data[at] != xxhash.xxh32_intdigest(data[4:at]) >> 8 & 0xFF:
        raise Corrupt("lz4: the checksum of the frame header is wrong")
    return at + 1, 1 << (2 * size + 8), bool(flags & 0x10), bool(flags & 0x04)


def _unlz4_block(block: memoryview, scratch: Scratch, used: int, limit: int, most: int) -> int:
    # lz4 makes at most 255 bytes of one, so a small block never needs a large buffer.
    room = min(most, 255 * len(block))
    scratch.make_room(used, min(room, limit))
    try:
        written: int = cramjam.lz4.decompress_block_into(
            block, scratch.view[used : used + min(room, limit)], output_len=min(room, limit)
        )
    except cramjam.DecompressionError as problem:
        if limit < room:
            _too_large(limit)
        raise Corrupt(f"lz4: {problem}") from None
    return used + written


def compress(codec: int, data: Bytes, *, magic: int = 2, level: int | None = None) -> bytes:
    """`data` as Kafka's own writers frame it, at Kafka's default levels."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return zlib.compress(data, -1 if level is None else level, wbits=31)
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))
    if codec == Codec.SNAPPY:
        return _snappy(memoryview(data))
    if codec == Codec.LZ4:
        return _lz4(memoryview(data), magic)
    raise Unsupported(f"compression codec {codec} is not known")


def _snappy(data: memoryview) -> bytes:
    out = bytearray(_XERIAL_HEADER)
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK]))
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


def _lz4(data: memoryview, magic: int) -> bytes:
    out = bytearray(_LZ4_MAGIC + b"\x60\x40")
    # Clients of the v0 format hashed the frame's magic number too; readers of v0 do not check.
    out.append(xxhash.xxh32_intdigest(bytes(out if magic == 0 else out[4:])) >> 8 & 0xFF)
    for at in range(0, len(data), _LZ4_BLOCK):
        plain = data[at : at + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) >= len(plain):
            out += (len(plain) | _LZ4_STORED).to_bytes(4, "little") + plain
        else:
            out += len(block).to_bytes(4, "little") + block
    return bytes(out) + b"\x00\x00\x00\x00"

"""Where batches begin and end inside a file, without looking into them.

Magic 0, 1 and 2 share their first 17 bytes: offset int64, length int32 of what follows it, four
bytes that differ, magic int8. Damage shows as a length or magic that Kafka never writes; after
it, the next batch is searched by the shape of its header and trusted by its checksum.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import zlib
from collections.abc import Callable

import google_crc32c
import msgspec

OVERHEAD = 12
TO_MAGIC = 17
HEADER = struct.Struct(">qiib")
# What `length` is at least, by magic: an empty batch, or a record with null key and value.
MIN_LENGTH = (14, 22, 49)

_LAST_OFFSET_DELTA = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")
_CHUNK = 1024 * 1024
_NOUGHT = bytes(_CHUNK)
SEARCH_BUDGET = 256 * 1024 * 1024

# The length's first byte of a batch up to 128 MB, then what a header of Kafka's has in places
# where a random byte would mostly differ.
_V2_SHAPE = re.compile(
    rb"(?=[\x00-\x7f].{7}[\x00-\x07].{7}\x02.{4}\x00[\x00-\x7f][\x00-\x7f])", re.DOTALL
)
_ANY_SHAPE = re.compile(
    rb"(?=[\x00-\x7f].{7}(?!\x00\x00\x00[\x00-\x0d])[\x00-\x07].{7}(?:\x02.{4}\x00[\x00-\x7f][\x00-\x7f]|[\x00\x01][\x00-\x0f]))",
    re.DOTALL,
)
_SHAPE_BYTES = 24
# What a look at a header costs, in bytes that could have been summed up instead.
_GLANCE = 64


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A batch seen from outside. In magic 0 and 1 both offsets are the one in the header, which
    is that of the last message inside; magic 0 has no timestamp (-1)."""

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def implausible(base_offset: int, length: int, magic: int) -> str | None:
    """Why Kafka cannot have written this header, or None."""
    if magic not in (0, 1, 2):
        return f"magic {magic} is unknown"
    if length < MIN_LENGTH[magic]:
        return f"length {length} is too small for a batch of magic {magic}"
    if base_offset < 0:
        return f"base offset {base_offset} is negative"
    return None


def frame_at(buffer: bytes | memoryview, at: int, position: int) -> Frame:
    """The frame of a whole batch at `at`, which is `position` in its file."""
    base_offset, length, _, magic = HEADER.unpack_from(buffer, at)
    last_offset, timestamp = base_offset, -1
    if magic == 2:
        last_offset += _LAST_OFFSET_DELTA.unpack_from(buffer, at + 23)[0]
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, at + 35)
    elif magic == 1:
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, at + 18)
    return Frame(position, OVERHEAD + length, magic, base_offset, last_offset, timestamp)


def read_header(fd: int, position: int) -> tuple[int, int, int] | None:
    """Offset, length and magic at a position; None where the file ends before."""
    head = os.pread(fd, TO_MAGIC, position)
    if len(head) < TO_MAGIC:
        return None
    base_offset, length, _, magic = HEADER.unpack(head)
    return base_offset, length, magic


class BatchSearch:
    """Looks for batches in one open file, and trusts only a right checksum.

    `budget` bounds how many bytes it sums up in all: hostile bytes could ask for far more. Once
    it is spent, nothing is a batch.
    """

    def __init__(self, fd: int, max_bytes: int, budget: int = SEARCH_BUDGET) -> None:
        self.fd = fd
        self.max_bytes = max_bytes
        self.budget = budget

    def is_batch(self, position: int, limit: int) -> bool:
        """Whether a whole batch with a right checksum is at the position."""
        header = read_header(self.fd, position)
        if header is None or implausible(*header) is not None:
            return False
        _, length, magic = header
        return self._whole(position, length, magic, limit)

    def find(self, start: int, limit: int, *, legacy: bool) -> int | None:
        """The first position from `start` on at which a batch is; None if there is none.

        `legacy` looks for magic 0 and 1 too, which is slower: their headers have little shape.
        """
        shape = _ANY_SHAPE if legacy else _V2_SHAPE
        position = start
        while position + TO_MAGIC <= limit and self.budget > 0:
            # Chunks overlap, so that no header is lost between two.
            data = os.pread(self.fd, min(_CHUNK + _SHAPE_BYTES, limit - position), position)
            if len(data) < TO_MAGIC:
                return None
            for found in shape.finditer(data):
                at = found.start()
                length = int.from_bytes(data[at + 8 : at + 12], "big")
                magic = data[at + 16]
                self.budget -= _GLANCE
                if self.budget < 0:
                    return None
                if length >= MIN_LENGTH[magic] and self._whole(position + at, length, magic, limit):
                    return position + at
            position += _CHUNK
        return None

    def _whole(self, position: int, length: int, magic: int, limit: int) -> bool:
        end = position + OVERHEAD + length
        if end > limit or OVERHEAD + length > self.max_bytes or length > self.budget:
            return False
        self.budget -= length
        if magic == 2:
            stored = os.pread(self.fd, 4, position + 17)
            computed = self._sum(position + 21, end, google_crc32c.extend)
        else:
            stored = os.pread(self.fd, 4, position + 12)
            computed = self._sum(position + 16, end, lambda crc, data: zlib.crc32(data, crc))
        return int.from_bytes(stored, "big") == computed

    def _sum(self, start: int, end: int, extend: Callable[[int, bytes], int]) -> int:
        crc = 0
        while start < end:
            data = os.pread(self.fd, min(_CHUNK, end - start), start)
            if not data:
                return -1
            crc = extend(crc, data)
            start += len(data)
        return crc


def zeros_from(fd: int, position: int, limit: int) -> bool:
    """Whether there are only zeros from the position on: the tail of a preallocated file."""
    try:
        # Holes read as zeros, and a preallocated tail mostly is one.
        position = max(position, os.lseek(fd, position, os.SEEK_DATA))
    except OSError as error:
        if error.errno == errno.ENXIO:  # a hole up to the end
            return True
    while position < limit:
        data = os.pread(fd, min(_CHUNK, limit - position), position)
        if not data:
            return True
        if data != (_NOUGHT if len(data) == _CHUNK else bytes(len(data))):
            return False
        position += len(data)
    return True

"""What a broker writes into the header of a batch that it takes in: the rest stays as it came.

The checksum covers neither the base offset nor the leader epoch, so only a new timestamp costs
reading the batch.
"""

from __future__ import annotations

import struct
import zlib

import google_crc32c

from kraftline.errors import NotRepresentable
from kraftline.records.record import TimestampType

_i32 = struct.Struct(">i")
_u32 = struct.Struct(">I")
_i64 = struct.Struct(">q")


def set_base_offset(buffer: bytearray | memoryview, start: int, offset: int) -> None:
    """The first offset of a v2 batch; in v0 and v1 this is the offset of the entry itself."""
    _i64.pack_into(buffer, start, offset)


def set_last_offset(buffer: bytearray | memoryview, start: int, offset: int) -> None:
    """Move the batch so that it ends at `offset`."""
    delta = _i32.unpack_from(buffer, start + 23)[0] if buffer[start + 16] == 2 else 0
    _i64.pack_into(buffer, start, offset - delta)


def set_leader_epoch(buffer: bytearray | memoryview, start: int, epoch: int) -> None:
    if buffer[start + 16] != 2:
        raise NotRepresentable(f"format v{buffer[start + 16]} has no leader epoch")
    _i32.pack_into(buffer, start + 12, epoch)


def set_max_timestamp(
    buffer: bytearray | memoryview, start: int, timestamp_type: TimestampType, timestamp: int
) -> None:
    """The newest timestamp and its type; the checksum follows when something changes."""
    magic = buffer[start + 16]
    if magic == 0:
        raise NotRepresentable("format v0 has no timestamps")
    end = start + 12 + int(_i32.unpack_from(buffer, start + 8)[0])
    flags_at, timestamp_at, crc_at = (22, 35, 17) if magic == 2 else (17, 18, 12)
    flags = buffer[start + flags_at]
    wanted = flags & ~0x08 | (0x08 if timestamp_type == "LogAppendTime" else 0)
    if flags == wanted and _i64.unpack_from(buffer, start + timestamp_at)[0] == timestamp:
        return
    buffer[start + flags_at] = wanted
    _i64.pack_into(buffer, start + timestamp_at, timestamp)
    covered = bytes(memoryview(buffer)[start + crc_at + 4 : end])
    crc = google_crc32c.value(covered) if magic == 2 else zlib.crc32(covered)
    _u32.pack_into(buffer, start + crc_at, crc)

"""What clients may send that a broker has to refuse, or to make something else of.

Each case is a topic's settings and the bytes of one produce request. Times are relative to a now
that the test gives, so that our log and real Kafka can be asked the same at different moments.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

import google_crc32c

from kraftline.records import Codec, Record, build_batch
from kraftline.records.compression import compress
from kraftline.records.write import encode_records, frame_batch

HOUR = 3_600_000
DAY = 24 * HOUR


class Case(NamedTuple):
    """`make` gets a now in ms; `settings` are those of the topic, `code` is what Kafka answers."""

    name: str
    make: Callable[[int], bytes]
    settings: Mapping[str, str] = {}
    code: int = 0


def records(
    now: int, count: int = 3, *, key: bytes | None = b"k", times: tuple[int, ...] = ()
) -> list[Record]:
    return [Record(n, now + (times[n] if times else n), key, b"value %d" % n) for n in range(count)]


def batch(now: int, count: int = 3, **fields: object) -> bytes:
    return build_batch(records(now, count), **fields)  # type: ignore[arg-type]  # forwarded


def patched(data: bytes, at: int, form: str, value: int, *, crc: bool = True) -> bytes:
    """A batch with one field of its header changed, and its checksum made right again."""
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    if crc:
        struct.pack_into(">I", changed, 17, google_crc32c.value(bytes(changed[21:])))
    return bytes(changed)


def reframed(now: int, body: bytes, count: int, **fields: object) -> bytes:
    """Any bytes as the records of a batch."""
    return frame_batch(
        body,
        count=count,
        base_offset=0,
        last_offset=count - 1,
        base_timestamp=now,
        max_timestamp=now + count - 1,
        **fields,  # type: ignore[arg-type]  # forwarded
    )


def shifted_deltas(now: int, codec: Codec) -> bytes:
    """Records whose own offsets are 0, 5, 2."""
    odd = [Record(offset, now, b"k", b"v") for offset in (0, 5, 2)]
    body = b"".join(encode_records([record], 0, now) for record in odd)
    if codec:
        body = compress(codec, body)
    return reframed(now, body, 3, codec=codec)


COMPACTED = {"cleanup.policy": "compact"}
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
NARROW = {
    "message.timestamp.before.max.ms": str(HOUR),
    "message.timestamp.after.max.ms": str(HOUR),
}

CASES = (
    Case("plain", lambda now: batch(now)),
    Case("gzip", lambda now: batch(now, codec=Codec.GZIP)),
    Case("zstd", lambda now: batch(now, codec=Codec.ZSTD)),
    Case("snappy", lambda now: batch(now, codec=Codec.SNAPPY)),
    Case("lz4", lambda now: batch(now, codec=Codec.LZ4)),
    Case("append time", lambda now: batch(now), APPEND_TIME),
    Case("append time, compressed", lambda now: batch(now, codec=Codec.ZSTD), APPEND_TIME),
    Case("to gzip", lambda now: batch(now), {"compression.type": "gzip"}),
    Case("from lz4 to zstd", lambda now: batch(now, codec=Codec.LZ4), {"compression.type": "zstd"}),
    Case(
        "from lz4 to nothing",
        lambda now: batch(now, codec=Codec.LZ4),
        {"compression.type": "uncompressed"},
    ),
    Case("wrong checksum", lambda now: patched(batch(now), 17, ">I", 1, crc=False), code=2),
    Case("magic 0", lambda now: batch(now, magic=0), code=87),
    Case("magic 1", lambda now: batch(now, magic=1), code=87),
    Case("magic 3", lambda now: patched(batch(now), 16, ">b", 3), code=2),
    Case("two batches", lambda now: batch(now) + batch(now), code=87),
    Case("nothing", lambda now: b"", code=87),
    Case("half a batch", lambda now: batch(now)[:-5], code=87),
    Case("half a header", lambda now: batch(now)[:20], code=87),
    Case("ten bytes", lambda now: batch(now)[:10], code=87),
    Case("a batch and a half", lambda now: batch(now) + batch(now)[:40]),
    Case("a batch and zeros", lambda now: batch(now) + bytes(40), code=2),
    Case("length 10", lambda now: patched(batch(now), 8, ">i", 10), code=2),
    Case("length 30", lambda now: patched(batch(now), 8, ">i", 30), code=2),
    Case("negative length", lambda now: patched(batch(now), 8, ">i", -1), code=2),
    Case("base offset 7", lambda now: patched(batch(now), 0, ">q", 7), code=87),
    Case("negative base offset", lambda now: patched(batch(now), 0, ">q", -7), code=87),
    Case("count 2", lambda now: patched(batch(now), 57, ">i", 2), code=87),
    Case("count 4", lambda now: patched(batch(now), 57, ">i", 4), code=87),
    Case("count 0", lambda now: patched(batch(now), 57, ">i", 0), code=87),
    Case("negative count", lambda now: patched(batch(now), 57, ">i", -1), code=87),
    Case("last offset delta -1", lambda now: patched(batch(now), 23, ">i", -1), code=87),
    Case(
        "one record too many",
        lambda now: reframed(now, encode_records(records(now), 0, now), 2),
        code=87,
    ),
    Case(
        "one record too few",
        lambda now: reframed(now, encode_records(records(now), 0, now), 4),
        code=87,
    ),
    Case("records that are no records", lambda now: reframed(now, b"\xff" * 50, 3), code=-1),
    Case(
        "a record that ends late",
        lambda now: reframed(now, encode_records(records(now), 0, now)[:-3], 3),
        code=87,
    ),
    Case(
        "compressed bytes that are not",
        lambda now: reframed(now, b"\xff" * 50, 3, codec=Codec.ZSTD),
        code=-1,
    ),
    Case(
        "compressed records that are no records",
        lambda now: reframed(now, compress(Codec.GZIP, b"\xff" * 50), 3, codec=Codec.GZIP),
        code=87,
    ),
    Case(
        "one compressed record too few",
        lambda now: reframed(
            now,
            compress(Codec.GZIP, encode_records(records(now), 0, now)),
            4,
            codec=Codec.GZIP,
        ),
        code=87,
    ),
    Case(
        "one compressed record too many",
        lambda now: reframed(
            now,
            compress(Codec.GZIP, encode_records(records(now), 0, now)),
            2,
            codec=Codec.GZIP,
        ),
        code=87,
    ),
    Case("unknown codec", lambda now: patched(batch(now), 21, ">h", 5), code=-1),
    Case("offsets 0, 5, 2", lambda now: shifted_deltas(now, Codec.NONE)),
    Case("compressed offsets 0, 5, 2", lambda now: shifted_deltas(now, Codec.GZIP), code=-1),
    Case("a control batch", lambda now: batch(now, is_control=True), code=87),
    Case(
        "a producer without sequence",
        lambda now: patched(
            batch(now, producer_id=77, producer_epoch=0, base_sequence=0), 53, ">i", -1
        ),
        code=87,
    ),
    Case(
        "transactional without a producer",
        lambda now: patched(batch(now), 21, ">h", 0x10),
        code=53,
    ),
    Case("null keys", lambda now: build_batch(records(now, key=None))),
    Case(
        "null keys in a compacted topic",
        lambda now: build_batch(records(now, key=None)),
        COMPACTED,
        code=87,
    ),
    Case(
        "five null keys in a compacted topic",
        lambda now: build_batch(records(now, 5, key=None), codec=Codec.GZIP),
        COMPACTED,
        code=87,
    ),
    Case("keys in a compacted topic", lambda now: batch(now), COMPACTED),
    Case("too old", lambda now: build_batch(records(now, times=(0, -DAY, 0))), NARROW, code=32),
    Case(
        "too new", lambda now: build_batch(records(now, times=(DAY, 0, 2 * DAY))), NARROW, code=32
    ),
    Case("no time", lambda now: build_batch(records(-1, times=(0, 0, 0))), NARROW),
    Case("too new by default", lambda now: build_batch(records(now, times=(0, 0, DAY))), code=32),
    Case("old by default", lambda now: build_batch(records(now, times=(0, -900 * DAY, 0)))),
    Case(
        "too old with append time",
        lambda now: build_batch(records(now, times=(0, -DAY, 0))),
        {**NARROW, **APPEND_TIME},
    ),
    Case(
        "old and without key",
        lambda now: build_batch(records(now, key=None, times=(0, -DAY, 0))),
        {**NARROW, **COMPACTED},
        code=87,
    ),
    Case("says append time", lambda now: patched(batch(now), 21, ">h", 0x08)),
    Case(
        "says append time to append time",
        lambda now: patched(batch(now), 21, ">h", 0x08),
        APPEND_TIME,
        code=32,
    ),
    Case("max timestamp that is wrong", lambda now: patched(batch(now), 35, ">q", now + 77)),
    Case("max timestamp of -1", lambda now: patched(batch(now), 35, ">q", -1)),
    Case(
        "too large",
        lambda now: build_batch([Record(0, now, None, b"x" * 2000)]),
        {"max.message.bytes": "1000"},
        code=10,
    ),
    Case(
        "just so large",
        lambda now: build_batch([Record(0, now, None, b"x" * 931)]),
        {"max.message.bytes": "1000"},
        code=10,
    ),
    Case(
        "too large once uncompressed",
        lambda now: build_batch([Record(0, now, None, b"x" * 2000)], codec=Codec.ZSTD),
        {"max.message.bytes": "1000", "compression.type": "uncompressed"},
        code=10,
    ),
    Case("unused attribute bits", lambda now: patched(batch(now), 21, ">h", 0x0180)),
    Case("a delete horizon", lambda now: patched(batch(now), 21, ">h", 0x40)),
    Case("a leader epoch of its own", lambda now: patched(batch(now), 12, ">i", 99)),
)

# Where Kafka stumbles (an error of its own, or a batch that no reader makes sense of), a batch is
# refused here as what it is.
REFUSED_HERE = (
    "records that are no records",
    "compressed bytes that are not",
    "unknown codec",
    "offsets 0, 5, 2",
    "compressed offsets 0, 5, 2",
)
# What a broker refuses before it asks a log.
NOT_THE_LOGS = ("transactional without a producer",)

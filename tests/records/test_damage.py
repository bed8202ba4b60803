"""Bad bytes: always one of the errors for bad data, never a crash, a hang or a memory bomb."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from collections.abc import Callable
from types import ModuleType

import cramjam
import google_crc32c
import pytest

from kraftline.errors import BadData, Corrupt, TooLarge, Truncated, Unsupported
from kraftline.records import arrow, compression, runs
from kraftline.records.framing import batches
from kraftline.records.record import Codec, Record
from kraftline.records.write import build_batch, encode_records, frame_batch, varint
from tests.records.conftest import written_by_kafka
from tests.records.ways import read

RECORDS = [
    Record(10, 1000, b"key", b"value", (("header", b"x"), ("none", None))),
    Record(11, 1001, None, b"v" * 70),
    Record(15, 990, b"", None),
]
OLD = [Record(r.offset, r.timestamp, r.key, r.value) for r in RECORDS]
BAD = ("Corrupt", "Truncated", "TooLarge", "Unsupported")

SAMPLES = {
    **{f"v2-{c.name}": build_batch(RECORDS, codec=c) for c in Codec},
    **{
        f"v{magic}-{c.name}": build_batch(OLD, magic=magic, codec=c)
        for magic in (0, 1)
        for c in Codec
        if c != Codec.ZSTD
    },
}


def sealed(data: bytes | bytearray) -> bytes:
    """The same first batch with a length and a checksum that fit, so that damage gets deeper."""
    data = bytearray(data)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    if data[16] == 2:
        data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    else:
        data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("name", SAMPLES)
def test_cut_at_every_byte_it_is_truncated(name: str, kernel: ModuleType) -> None:
    data = SAMPLES[name]
    whole = read(data)
    for size in range(1, len(data)):
        # Old uncompressed sets are several entries, so a cut may fall between two.
        assert read(data[:size]) == "Truncated" or name in ("v0-NONE", "v1-NONE")
        assert read(data + data[:size]) == "Truncated" or name in ("v0-NONE", "v1-NONE")
    assert whole not in BAD


@pytest.mark.parametrize("name", SAMPLES)
def test_any_flipped_bit_is_noticed_or_outside_the_checksum(name: str, kernel: ModuleType) -> None:
    data = SAMPLES[name]
    good = read(data)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        result = read(bytes(damaged))
        if result not in BAD:
            # Only what the checksum does not cover can change: the offset, the leader epoch.
            assert len(result) == len(good)
            assert [r[1:] for r in result] == [r[1:] for r in good]


@pytest.mark.parametrize("name", SAMPLES)
def test_damage_under_a_right_checksum_never_fails_otherwise(name: str, kernel: ModuleType) -> None:
    data = SAMPLES[name]
    first = next(batches(data)).size_in_bytes
    rng = random.Random(name)
    for bit in range(8 * 12, 8 * first):
        damaged = bytearray(data[:first])
        damaged[bit // 8] ^= 1 << bit % 8
        if damaged[16] < 3:
            read(sealed(damaged))
        read(bytes(damaged), check_crc=False)
    for _ in range(300):
        damaged = bytearray(data[:first])
        for _ in range(rng.randint(1, 6)):
            damaged[rng.randrange(16, first)] = rng.choice(
                (0, 1, 127, 128, 255, rng.randrange(256))
            )
        if rng.random() < 0.3:
            del damaged[rng.randrange(20, first) :]
        if rng.random() < 0.3:
            damaged += rng.randbytes(rng.randint(1, 20))
        if len(damaged) > 26 and damaged[16] < 3:
            read(sealed(damaged))


def record(body: bytes) -> bytes:
    return varint(len(body)) + body


def hostile(body: bytes, *, count: int = 1, last: int = 10, base: int = 0) -> bytes:
    return frame_batch(
        body,
        count=count,
        base_offset=base,
        last_offset=base + last,
        base_timestamp=0,
        max_timestamp=0,
    )


GOOD = b"\x00" + varint(0) + varint(0) + b"\x01\x01\x00"

HOSTILE = {
    "a negative count": hostile(record(GOOD), count=-1),
    "a count of two thousand million": hostile(record(GOOD), count=0x7FFFFFFF),
    "more records than there are": hostile(record(GOOD), count=2),
    "fewer records than there are": hostile(2 * record(GOOD), count=1),
    "no records but a body": hostile(record(GOOD), count=0),
    "a record longer than the batch": hostile(varint(len(GOOD) + 1) + GOOD),
    "a record shorter than its fields": hostile(varint(len(GOOD) - 1) + GOOD),
    "a record longer than its fields": hostile(record(GOOD + b"\x00")),
    "a record of negative length": hostile(varint(-3) + GOOD),
    "a length that does not end": hostile(b"\xff" * 12),
    "a timestamp that does not end": hostile(record(b"\x00" + b"\xff" * 11)),
    "an offset before the batch": hostile(record(b"\x00\x00" + varint(-1) + b"\x01\x01\x00")),
    "an offset behind the batch": hostile(record(b"\x00\x00" + varint(11) + b"\x01\x01\x00")),
    "a key past the end": hostile(record(b"\x00\x00\x00" + varint(100) + b"\x01\x00")),
    "a value past the end": hostile(record(b"\x00\x00\x00\x01" + varint(1 << 30) + b"\x00")),
    "a negative count of headers": hostile(record(b"\x00\x00\x00\x01\x01" + varint(-1))),
    "too many headers": hostile(record(b"\x00\x00\x00\x01\x01" + varint(1 << 30) + b"\x00\x01")),
    "a header key of negative length": hostile(
        record(b"\x00\x00\x00\x01\x01" + varint(1) + b"\x01\x01")
    ),
    "a header value past the end": hostile(
        record(b"\x00\x00\x00\x01\x01" + varint(1) + b"\x00" + varint(9))
    ),
    "a timestamp that overflows": frame_batch(
        record(b"\x00" + varint((1 << 63) - 1) + b"\x00\x01\x01\x00"),
        count=1,
        base_offset=0,
        last_offset=0,
        base_timestamp=5,
        max_timestamp=5,
    ),
    "a negative base offset": hostile(record(GOOD), base=-5, last=0),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_contradicts_itself_is_corrupt(name: str, kernel: ModuleType) -> None:
    assert read(HOSTILE[name]) == "Corrupt"


def test_extreme_numbers_that_are_right_are_read(kernel: ModuleType) -> None:
    body = record(b"\x00" + varint(-(1 << 63)) + varint(0x7FFFFFFF) + b"\x01\x01\x00")
    data = frame_batch(
        body,
        count=1,
        base_offset=(1 << 63) - (1 << 31),
        last_offset=(1 << 63) - 1,
        base_timestamp=0,
        max_timestamp=0,
    )
    assert read(data) == [((1 << 63) - 1, -(1 << 63), None, None, (), -1)]


def test_lengths_and_magics_of_the_framing(kernel: ModuleType) -> None:
    good = SAMPLES["v2-NONE"]
    short, magic = bytearray(good), bytearray(good)
    short[8:12] = (48).to_bytes(4, "big")
    magic[16] = 3
    for data, kind in ((short, Corrupt), (magic, Unsupported), (bytes(100), Corrupt)):
        walk = batches(good + data)
        assert next(walk).base_offset == 10
        with pytest.raises(kind) as raised:
            next(walk)
        assert raised.value.position == len(good)
    huge = bytearray(good)
    huge[8:12] = (0x7FFFFFFF).to_bytes(4, "big")
    with pytest.raises(Truncated):
        list(batches(huge))


@pytest.mark.parametrize("way", ["run", "columns"])
def test_with_a_callback_reading_goes_on_at_the_next_batch(way: str, kernel: ModuleType) -> None:
    good = SAMPLES["v2-NONE"]
    flipped = bytearray(good)
    flipped[-1] ^= 1
    zstd = sealed(bytearray(SAMPLES["v2-ZSTD"][:-4]))
    data = b"".join((good, flipped, good, HOSTILE["a value past the end"], zstd, good, bytes(99)))
    problems: list[BadData] = []
    if way == "run":
        found = [f for part in runs.tuples(data, on_error=problems.append) for f in part]
        assert len(found) == 9
    else:
        assert arrow.decode_columns(data, on_error=problems.append).num_rows == 9
    n, h = len(good), len(HOSTILE["a value past the end"])
    expected = {n, 3 * n, 3 * n + h, 4 * n + h + len(zstd)}
    assert {p.position for p in problems} == expected
    assert len(problems) == 4


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: zlib.compress(bytes(200 << 20), 9, wbits=31),
    "zstd": lambda: bytes(cramjam.zstd.compress(bytes(200 << 20))),
    "zstd that claims 4 GB": lambda: (
        b"\x28\xb5\x2f\xfd\xe0" + (4 << 30).to_bytes(8, "little") + b"\x03\x00\x00" * 20
    ),
    "lz4": lambda: compression.compress(Codec.LZ4, bytes(200 << 20)),
    "snappy": lambda: compression.compress(Codec.SNAPPY, bytes(200 << 20)),
    "raw snappy that claims 4 GB": lambda: b"\xff\xff\xff\xff\x0f" + bytes(1000),
}


def test_one_flipped_bit_among_many_batches_is_found(kernel: ModuleType) -> None:
    one = build_batch([Record(0, 0, b"key", b"value" * 20)])
    count = 40
    rng = random.Random(7)
    for _ in range(50):
        data = bytearray(one * count)
        row, at = rng.randrange(count), rng.randrange(21, len(one))
        data[row * len(one) + at] ^= 1 << rng.randrange(8)
        found: list[BadData] = []
        run = runs.prepare(data, position=1000, on_error=found.append)
        assert [each.position for each in found] == [1000 + row * len(one)]
        assert run.records == count - 1
        assert run.end == len(data)
        with pytest.raises(BadData, match="checksum"):
            runs.prepare(data)


def zstd(*values: bytes | None, offset: int = 0) -> bytes:
    records = [Record(offset + i, i, None, value) for i, value in enumerate(values)]
    return build_batch(records, codec=Codec.ZSTD)


def test_among_many_batches_of_zstd_there_may_be_others(kernel: ModuleType) -> None:
    small = zstd(b"value" * 20, None, b"")
    others = [
        build_batch([Record(0, 0, b"k", b"marker")]),
        build_batch([Record(0, 0, b"k", b"x" * 10_000)]),
        build_batch([Record(0, 0, b"k", b"y" * 500)], codec=Codec.LZ4),
        build_batch(OLD, magic=1, codec=Codec.GZIP),
        zstd(b"z" * (3 << 20), b"after"),  # larger than what is unpacked many at a time
        zstd(*[random.Random(1).randbytes(1 << 20)] * 2),
        sealed(small[:57] + bytes(4)),  # emptied by compaction
    ]
    data = small * 10 + b"".join(other + small * 3 for other in others)
    found = read(data)
    assert not isinstance(found, str)
    assert len(found) == 3 * (10 + 3 * len(others)) + 1 + 1 + 1 + len(OLD) + 2 + 2


def test_one_bad_batch_among_many_of_zstd_is_named_and_left_out(kernel: ModuleType) -> None:
    one = zstd(b"key" * 9, b"value" * 20, bytes(300))
    bad = {
        "a flipped bit": one[:70] + bytes([one[70] ^ 1]) + one[71:],
        "a cut frame": sealed(one[:-4]),
        "no frame": sealed(one[:61] + b"not zstd"),
        "nothing": sealed(one[:61]),
        "something after the frame": sealed(one + b"rest"),
        "records that are cut": sealed(zstd(b"x" * 50)[:57] + b"\0\0\0\x09" + one[61:]),
    }
    for name, batch in bad.items():
        found: list[BadData] = []
        data = one * 20 + batch + one * 20
        run = runs.prepare(data, on_error=found.append)
        assert [each.position for each in found] == [20 * len(one)], name
        assert run.records == 40 * 3, name
        assert isinstance(read(data), str)


def test_damage_in_a_frame_of_many_never_fails_otherwise(kernel: ModuleType) -> None:
    one = zstd(*[b"%d and a value of some length" % i for i in range(20)])
    rng = random.Random(11)
    for _ in range(150):
        changed = bytearray(one)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(61, len(one))] = rng.randrange(256)
        found = read(one * 9 + sealed(changed) + one * 9)
        assert found in BAD or len(found) == 19 * 20


@pytest.mark.parametrize("bomb", ["zstd", "zstd that claims 4 GB"])
def test_a_bomb_among_many_batches_is_refused_within_the_limit(bomb: str) -> None:
    one = zstd(b"value" * 20)
    packed = sealed(one[:61] + BOMBS[bomb]())
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge) as raised:
            runs.prepare(one * 20 + packed + one * 20, limit=4 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert raised.value.position == 20 * len(one)
    assert peak < 24 << 20


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_within_the_limit(name: str) -> None:
    codec = next(c for c in Codec if c.name.lower() in name)
    packed = BOMBS[name]()
    data = frame_batch(
        packed,
        count=100,
        base_offset=0,
        last_offset=99,
        base_timestamp=0,
        max_timestamp=0,
        codec=codec,
    )
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge) as raised:
            next(batches(data)).records(limit=4 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert raised.value.position == 0
    assert peak < 24 << 20
    if "claims" in name:
        assert peak < 2 << 20


def test_garbage_in_every_codec_is_corrupt(kernel: ModuleType) -> None:
    rng = random.Random(3)
    body = encode_records(RECORDS, 10, 1000)
    for codec in Codec:
        if codec == Codec.NONE:
            continue
        packed = compression.compress(codec, body)
        for cut in range(len(packed)):
            for data in (packed[:cut], packed[:cut] + rng.randbytes(len(packed) - cut)):
                batch = frame_batch(
                    data,
                    count=3,
                    base_offset=10,
                    last_offset=15,
                    base_timestamp=1000,
                    max_timestamp=1001,
                    codec=codec,
                )
                result = read(batch)
                # A cut after the last block can leave nothing missing (a gzip or lz4 trailer
                # is missed; the end of a snappy stream is not marked).
                assert result in BAD or codec == Codec.SNAPPY


def test_codecs_beyond_the_known_are_unsupported(kernel: ModuleType) -> None:
    for codec in (5, 6, 7):
        data = bytearray(SAMPLES["v2-NONE"])
        data[22] |= codec
        assert read(sealed(data)) == "Unsupported"


def test_a_wrapper_in_a_wrapper_is_corrupt(kernel: ModuleType) -> None:
    inner = SAMPLES["v1-GZIP"]
    outer = bytearray(build_batch([Record(20, 0, None, b"")], magic=1, codec=Codec.GZIP))
    packed = compression.compress(Codec.GZIP, inner)
    nested = outer[:30] + len(packed).to_bytes(4, "big") + packed
    assert read(sealed(nested)) == "Corrupt"


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_without_value_or_messages_are_corrupt(magic: int, kernel: ModuleType) -> None:
    head = bytearray(build_batch(OLD, magic=magic, codec=Codec.GZIP)[: 30 if magic else 22])
    null = head + b"\xff\xff\xff\xff"
    nothing = compression.compress(Codec.GZIP, b"")
    empty = head + len(nothing).to_bytes(4, "big") + nothing
    zstd = bytearray(SAMPLES[f"v{magic}-GZIP"])
    zstd[17] = 4
    for data in (null, empty, zstd):
        assert read(sealed(data)) == "Corrupt"


def test_the_checksum_of_every_old_message_counts() -> None:
    data = bytearray(written_by_kafka("v1-none"))
    data[40] ^= 1
    with pytest.raises(Corrupt):
        [b.records() for b in batches(data)]
    assert sum(len(b.records(check_crc=False)) for b in batches(data)) == 12

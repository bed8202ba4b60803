"""What is written is what is read, for random records in every format and codec."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftline.records import compression
from kraftline.records.framing import batches
from kraftline.records.patch import (
    set_base_offset,
    set_last_offset,
    set_leader_epoch,
    set_max_timestamp,
)
from kraftline.records.record import Codec, Record, TimestampType
from kraftline.records.write import build_batch
from tests.effort import rounds
from tests.records.ways import read

relaxed = settings(
    max_examples=rounds(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

blobs = st.none() | st.binary(max_size=80) | st.binary(min_size=120, max_size=300)
headers = st.lists(st.tuples(st.text(max_size=12), st.none() | st.binary(max_size=20)), max_size=4)
timestamps = st.integers(-1, 1 << 42) | st.integers(1_700_000_000_000, 1_700_000_100_000)


@st.composite
def record_lists(draw: st.DrawFn, with_headers: bool = True) -> list[Record]:
    offset = draw(st.integers(0, 1 << 50))
    found = []
    for _ in range(draw(st.integers(1, 12))):
        found.append(
            Record(
                offset,
                draw(timestamps),
                draw(blobs),
                draw(blobs),
                tuple(draw(headers)) if with_headers else (),
            )
        )
        offset += draw(st.integers(1, 5) | st.integers(1, 100_000))
    return found


def plain(records: list[Record]) -> list[tuple[object, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, r.headers, r.sequence) for r in records]


@pytest.mark.parametrize("codec", Codec)
@given(records=record_lists())
@relaxed
def test_v2_comes_back(codec: Codec, kernel: ModuleType, records: list[Record]) -> None:
    assert read(build_batch(records, codec=codec)) == plain(records)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [c for c in Codec if c != Codec.ZSTD])
@given(records=record_lists(with_headers=False))
@relaxed
def test_old_formats_come_back(
    magic: int, codec: Codec, kernel: ModuleType, records: list[Record]
) -> None:
    if magic == 0:
        records = [Record(r.offset, -1, r.key, r.value) for r in records]
    assert read(build_batch(records, magic=magic, codec=codec)) == plain(records)


@given(runs=st.lists(record_lists(with_headers=False), min_size=1, max_size=5), data=st.data())
@relaxed
def test_a_mix_of_formats_keeps_its_order(
    kernel: ModuleType, runs: list[list[Record]], data: st.DataObject
) -> None:
    buffer, expected = b"", []
    for records in runs:
        magic = data.draw(st.integers(0, 2))
        codec = Codec(data.draw(st.integers(0, 3)))
        if magic == 0:
            records = [Record(r.offset, -1, r.key, r.value) for r in records]
        buffer += build_batch(records, magic=magic, codec=codec)
        expected += plain(records)
    assert read(buffer) == expected


@given(records=record_lists(), sequence=st.integers(0, (1 << 31) - 1))
@relaxed
def test_sequences_start_again_at_zero(
    kernel: ModuleType, records: list[Record], sequence: int
) -> None:
    data = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=sequence)
    found = read(data)
    assert not isinstance(found, str)
    first = records[0].offset
    assert [f[5] for f in found] == [(sequence + r.offset - first) % (1 << 31) for r in records]


@pytest.mark.parametrize("codec", [c for c in Codec if c])
@pytest.mark.parametrize("magic", [0, 2])
@given(data=st.binary(max_size=300), times=st.sampled_from([1, 1, 3, 700]))
@settings(max_examples=rounds(30), deadline=None)
def test_codecs_come_back(codec: Codec, magic: int, data: bytes, times: int) -> None:
    packed = compression.compress(codec, data * times, magic=magic)
    assert compression.decompress(codec, packed, magic=magic) == data * times


@given(
    records=record_lists(with_headers=False),
    magic=st.sampled_from([1, 2]),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
    kind=st.sampled_from(["CreateTime", "LogAppendTime"]),
    timestamp=timestamps,
)
@settings(max_examples=rounds(60), deadline=None)
def test_a_patched_batch_is_what_would_have_been_written(
    records: list[Record], magic: int, codec: Codec, kind: TimestampType, timestamp: int
) -> None:
    data = bytearray(build_batch(records, magic=magic, codec=codec))
    set_max_timestamp(data, 0, kind, timestamp)
    moved = records[-1].offset + 1000
    if magic == 2:
        set_leader_epoch(data, 0, 77)
        set_base_offset(data, 0, 5)
        set_last_offset(data, 0, moved)
    batch = next(batches(data))
    batch.check()
    assert (batch.timestamp_type, batch.max_timestamp) == (kind, timestamp)
    if magic == 2:
        assert (batch.last_offset, batch.partition_leader_epoch) == (moved, 77)
        if kind == "LogAppendTime":
            assert {r.timestamp for r in batch.records()} == {timestamp}

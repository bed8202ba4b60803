"""Reading a segment: windows, seeking, tails."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftline.errors import NotKafka, TooLarge
from kraftline.storage import batch_search
from kraftline.storage.offset_index import OffsetEntry, format_offset_index
from kraftline.storage.segment import Damage, SegmentReader, Tail, TailKind
from kraftline.storage.segment_write import write_segment
from kraftline.storage.time_index import TimeEntry, read_time_index, write_time_index
from tests.effort import rounds
from tests.fixture_files import name_of, says
from tests.storage.batches import one_batch, some_batches
from tests.storage.fixture_files import data_files

LOG = "00000000000000000000.log"


def write(folder: Path, data: bytes, name: str = LOG) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# Kafka was not asked about empty files.
FILES = [p for p in data_files("*.log", "*.checkpoint") if p.stat().st_size]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_batches_are_where_kafka_says(path: Path) -> None:
    said = says(path, "records.jsonl")
    assert said is not None
    rows = [json.loads(line) for line in said.splitlines()]
    rows = [row for row in rows if "position" in row]
    fields = ("position", "sizeInBytes", "baseOffset", "lastOffset", "magic", "maxTimestamp")
    expected = [tuple(key) for key, _ in groupby([row[f] for f in fields] for row in rows)]
    with SegmentReader(path) as reader:
        found = [
            (position, b.size_in_bytes, b.base_offset, b.last_offset, b.magic, b.max_timestamp)
            for b, position in reader.batches()
        ]
        # From outside, old wrappers show only their last offset.
        outside = [(f.position, f.size, f.last_offset, f.max_timestamp) for f in reader.frames()]
    assert found == expected
    assert outside == [(p, s, last, time) for p, s, _, last, _, time in expected]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("keep", [False, True])
def test_small_windows_give_the_same_batches(tmp_path: Path, magic: int, keep: bool) -> None:
    batches = some_batches(200, value_size=300, magic=magic)
    path = write(tmp_path, b"".join(batches))
    with SegmentReader(path, window=4096) as reader:
        runs = [
            (bytes(run.buffer[run.start : run.end]), run.position) for run in reader.runs(keep=keep)
        ]
        assert len(runs) > 5
        assert b"".join(data for data, _ in runs) == b"".join(batches)
        assert [position for _, position in runs] == [
            sum(len(data) for data, _ in runs[:n]) for n in range(len(runs))
        ]
        assert reader.tail is not None
        assert reader.tail.kind is TailKind.COMPLETE


def test_the_smallest_message_of_all_is_read_at_the_end(tmp_path: Path) -> None:
    message = bytes(8) + b"\0\0\0\x0e" + b"\xa7\xec\x68\x03" + b"\0\0" + b"\xff" * 8
    with SegmentReader(write(tmp_path, message)) as reader:
        assert [(f.position, f.size, f.magic) for f in reader.frames()] == [(0, 26, 0)]


def test_a_batch_larger_than_the_window_is_read_whole(tmp_path: Path) -> None:
    batches = [one_batch(0), one_batch(1, value_size=50_000), one_batch(2)]
    with SegmentReader(write(tmp_path, b"".join(batches)), window=4096) as reader:
        assert [b.base_offset for b, _ in reader.batches()] == [0, 1, 2]


def test_a_batch_beyond_the_limit_is_told_and_passed_over(tmp_path: Path) -> None:
    batches = [one_batch(0), one_batch(1, value_size=50_000), one_batch(2)]
    path = write(tmp_path, b"".join(batches))
    found: list[Damage] = []
    with SegmentReader(path, max_batch_bytes=10_000, on_damage=found.append) as reader:
        assert [b.base_offset for b, _ in reader.batches()] == [0, 2]
    assert [(d.position, d.length, d.too_large) for d in found] == [
        (len(batches[0]), len(batches[1]), True)
    ]
    with SegmentReader(path, max_batch_bytes=10_000) as reader, pytest.raises(TooLarge):
        list(reader.batches())


def test_kept_batches_stay_what_they_were(tmp_path: Path) -> None:
    batches = some_batches(100, value_size=300)
    with SegmentReader(write(tmp_path, b"".join(batches)), window=4096) as reader:
        kept = [batch for batch, _ in reader.batches()]
    assert [bytes(batch.data) for batch in kept] == batches


def test_every_cut_is_a_tail_and_no_damage(tmp_path: Path) -> None:
    batches = some_batches(4)
    whole = b"".join(batches)
    ends = [sum(map(len, batches[:n])) for n in range(5)]
    for cut in range(len(whole) + 1):
        with SegmentReader(write(tmp_path, whole[:cut])) as reader:
            count = len(list(reader.batches()))
            assert count == max(n for n in range(5) if ends[n] <= cut)
            assert reader.tail is not None
            assert reader.tail.position == ends[count]
            assert reader.tail.length == cut - ends[count]
            complete = cut in ends
            assert reader.tail.kind is (TailKind.COMPLETE if complete else TailKind.PARTIAL)


def test_preallocated_zeros_are_a_tail(tmp_path: Path) -> None:
    data = b"".join(some_batches(5))
    for zeros in (17, 100, 100_000):
        with SegmentReader(write(tmp_path, data + bytes(zeros))) as reader:
            assert len(list(reader.batches())) == 5
            assert reader.tail is not None
            assert (reader.tail.kind, reader.tail.position) == (TailKind.ZEROS, len(data))


def test_a_large_preallocated_file_is_little_work(tmp_path: Path) -> None:
    path = write(tmp_path, b"".join(some_batches(5)))
    with path.open("r+b") as file:
        file.truncate(1 << 29)
    with SegmentReader(path) as reader:
        assert len(list(reader.batches())) == 5
        assert reader.tail is not None
        assert reader.tail.kind is TailKind.ZEROS


def test_a_batch_half_arrived_in_a_preallocated_file_is_not_there_yet(tmp_path: Path) -> None:
    batches = some_batches(3, value_size=100)
    data = b"".join(batches[:2]) + batches[2][:80] + bytes(1000)
    with SegmentReader(write(tmp_path, data)) as reader:
        assert len(list(reader.batches())) == 2
        assert reader.tail is not None
        assert reader.tail.kind is TailKind.PARTIAL
        assert reader.tail.position == len(batches[0]) + len(batches[1])


@pytest.mark.parametrize("indexed", [True, False])
def test_seeking_by_offset_and_time(tmp_path: Path, indexed: bool) -> None:
    batches = some_batches(300, value_size=200, start=50)
    path = tmp_path / "00000000000000000050.log"
    write_segment(path, batches)
    if not indexed:
        path.with_suffix(".index").unlink()
        path.with_suffix(".timeindex").unlink()
    with SegmentReader(path) as reader:
        frames = list(reader.frames())
        for offset in range(45, frames[-1].last_offset + 3):
            expected = next((f.position for f in frames if f.last_offset >= offset), None)
            assert reader.position_of_offset(offset) == expected
        for time in range(990, 4100, 7):
            expected = next((f.position for f in frames if f.max_timestamp >= time), None)
            assert reader.position_of_time(time) == expected


def test_an_index_that_lies_only_costs_time(tmp_path: Path) -> None:
    path = tmp_path / LOG
    write_segment(path, some_batches(300, value_size=200))
    with SegmentReader(path) as reader:
        expected = reader.position_of_offset(250)
        data = bytearray(path.with_suffix(".index").read_bytes())
        for at in range(7, len(data), 8):
            data[at] ^= 1
        path.with_suffix(".index").write_bytes(data)
        assert reader.position_of_offset(250) == expected
        path.with_suffix(".index").write_bytes(b"junk")
        assert reader.position_of_offset(250) == expected


def test_a_time_index_that_lies_only_costs_time(tmp_path: Path) -> None:
    path = tmp_path / LOG
    write_segment(path, some_batches(300, value_size=200))
    index = read_time_index(path.with_suffix(".timeindex"))
    times, offsets = list(index.timestamps), list(index.relative_offsets)
    asked = times[2]
    with SegmentReader(path) as reader:
        expected = reader.position_of_time(asked)
        for offset in offsets[3:]:
            # As if all up to this offset were older than what is asked for.
            entries = [TimeEntry(times[0], offsets[0]), TimeEntry(asked - 1, offset)]
            write_time_index(path.with_suffix(".timeindex"), 0, entries)
            assert reader.position_of_time(asked) == expected


def test_the_time_indexes_of_real_kafka_are_believed() -> None:
    """An entry is only passed over where its batch has no times: messages of v0."""
    led = 0
    for path in data_files("*.timeindex"):
        with SegmentReader(path.with_suffix(".log")) as reader:
            for time in read_time_index(path).timestamps:
                hint, found = reader._time_hint(time), reader.position_of_time(time)
                assert found is None or hint <= found
                led += hint > 0
    assert led > 200


@settings(max_examples=rounds(30), deadline=None)
@given(st.lists(st.integers(0, 60_000), max_size=4))
def test_a_file_read_in_parts_gives_every_batch_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("parts") / LOG
    write_segment(path, some_batches(150, value_size=200))
    with SegmentReader(path) as reader:
        every = [position for _, position in reader.batches()]
        edges = [0, *sorted(cuts), reader.size()]
        found = []
        for start, end in pairwise(edges):
            found += [p for _, p in reader.batches(reader.boundary(start), end)]
    assert found == every


def test_a_missing_segment_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(NotKafka, match="no such file"):
        SegmentReader(tmp_path / LOG)


def test_a_stale_index_that_leads_too_far_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / LOG
    write_segment(path, some_batches(300, value_size=200))
    with SegmentReader(path) as reader:
        expected = reader.position_of_offset(100)
        frames = list(reader.frames())
        # Says of a batch near the end that it holds offset 50.
        lie = [OffsetEntry(50, frames[-5].position)]
        path.with_suffix(".index").write_bytes(format_offset_index(0, lie))
        assert reader.position_of_offset(100) == expected


def test_a_batch_written_over_zeros_while_we_look_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live preallocated file: the broker writes between our read and our second look."""
    first, second = one_batch(0), one_batch(1)
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(first + bytes(4096))
    real = batch_search.read_header

    def written_meanwhile(fd: int, position: int) -> tuple[int, int, int] | None:
        with path.open("r+b") as file:
            file.seek(len(first))
            file.write(second)
        return real(fd, position)

    monkeypatch.setattr(batch_search, "read_header", written_meanwhile)
    with SegmentReader(path) as reader:
        assert [batch.base_offset for batch, _ in reader.batches()] == [0, 1]
        assert reader.tail == Tail(TailKind.ZEROS, len(first) + len(second), 4096 - len(second))

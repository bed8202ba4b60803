"""Segments and indexes written as Kafka writes them."""

from __future__ import annotations

import re
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from kraftline.errors import Corrupt, NotRepresentable
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.offset_index import read_offset_index
from kraftline.storage.segment import SegmentReader
from kraftline.storage.segment_write import rebuild_indexes, write_segment
from kraftline.storage.time_index import read_time_index
from tests.fixture_files import FIXTURES, name_of
from tests.storage.batches import one_batch, some_batches
from tests.storage.fixture_files import data_files

LOGS = [path for path in data_files("*.log") if path.with_suffix(".index").exists()]


def interval_of(path: Path) -> int:
    """What the fixture's broker was told; the metadata log has Kafka's default in any case."""
    told = (
        "index.interval.bytes"
        in (FIXTURES / path.relative_to(FIXTURES).parts[0] / "make.py").read_text()
    )
    return 512 if told and path.parent.name != "__cluster_metadata-0" else 4096


def by_batch(path: Path) -> bool:
    """Whether the broker indexed batch by batch, as 4.x does; before, append by append."""
    return not re.search(r"_[0-3]_\d+$", path.relative_to(FIXTURES).parts[0])


def died_often(path: Path) -> bool:
    """Whether brokers were killed so often that too many histories could lead to their indexes."""
    return path.relative_to(FIXTURES).parts[0] == "eventful_day"


@pytest.mark.parametrize(
    "path", [path for path in LOGS if by_batch(path) and not died_often(path)], ids=name_of
)
def test_rebuilt_indexes_are_those_of_kafka(path: Path) -> None:
    offsets = read_offset_index(path.with_suffix(".index"))
    times = read_time_index(path.with_suffix(".timeindex"))
    real = (
        path.with_suffix(".index").read_bytes()[: 8 * len(offsets)],
        path.with_suffix(".timeindex").read_bytes()[: 12 * len(times)],
    )
    interval = interval_of(path)
    for closed in (True, False):
        if rebuild_indexes(path, interval=interval, closed=closed) == real:
            return
    # The broker was stopped and started while this segment was the active one.
    with SegmentReader(path) as reader:
        frames = list(reader.frames())
    for stops in combinations_with_replacement(range(1, len(frames) + 1), 2):
        builder = IndexBuilder(offsets.base_offset, interval)
        for n, frame in enumerate(frames):
            if n in stops:
                builder.reopen(frame.position)
            builder.add(frame.position, frame.last_offset, frame.max_timestamp)
        builder.close()
        if (builder.offset_index(), builder.time_index()) == real:
            return
    pytest.fail("no history of stops gives these indexes")


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_index_entries_of_any_release_lead_to_batches(path: Path) -> None:
    with SegmentReader(path) as reader:
        frames = {frame.position: frame for frame in reader.frames()}
        last_offsets = {frame.last_offset for frame in frames.values()}
        for entry in read_offset_index(path.with_suffix(".index")):
            # An append of several batches is known by its first position and its last offset.
            assert entry.offset >= frames[entry.position].last_offset
            assert entry.offset in last_offsets
        for time in read_time_index(path.with_suffix(".timeindex")):
            if all(frame.magic == 0 for frame in frames.values()):
                continue  # 0.10 indexed times that format v0 then had no place for
            position = reader.position_of_time(time.timestamp)
            assert position is not None
            assert frames[position].max_timestamp == time.timestamp


def test_a_written_segment_reads_back(tmp_path: Path) -> None:
    batches = some_batches(300, value_size=100, start=7)
    path = tmp_path / "00000000000000000007.log"
    end = write_segment(path, batches)
    with SegmentReader(path) as reader:
        read = [batch for batch, _ in reader.batches()]
    assert [bytes(batch.data) for batch in read] == batches
    assert end == read[-1].last_offset + 1
    assert rebuild_indexes(path) == (
        path.with_suffix(".index").read_bytes(),
        path.with_suffix(".timeindex").read_bytes(),
    )
    assert read_time_index(path.with_suffix(".timeindex")).timestamps[-1] == max(
        batch.max_timestamp for batch in read
    )


def test_an_empty_segment_ends_at_its_base_offset(tmp_path: Path) -> None:
    assert write_segment(tmp_path / "00000000000000000007.log", []) == 7
    assert (tmp_path / "00000000000000000007.index").read_bytes() == b""


def test_a_segment_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    write_segment(path, [])
    with pytest.raises(FileExistsError):
        write_segment(path, [])


def test_what_is_no_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Corrupt):
        write_segment(tmp_path / "00000000000000000000.log", [b"not a batch at all"])
    with pytest.raises(Corrupt):
        write_segment(tmp_path / "00000000000000000001.log", [one_batch(1)[:-1]])
    with pytest.raises(NotRepresentable, match="20 digits"):
        write_segment(tmp_path / "x.log", [])


def test_offsets_too_far_from_the_base_need_a_new_segment(tmp_path: Path) -> None:
    with pytest.raises(NotRepresentable, match="new segment"):
        write_segment(tmp_path / "00000000000000000000.log", [one_batch(2**31)])
    with pytest.raises(NotRepresentable, match="new segment"):
        write_segment(tmp_path / "00000000000000000009.log", [one_batch(2)])

"""Offset, time and transaction indexes: read as Kafka reads them, written as it writes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.errors import Corrupt, Truncated, Unsupported
from kraftline.storage import offset_index, time_index
from kraftline.storage.offset_index import (
    OffsetEntry,
    check_within,
    format_offset_index,
    read_offset_index,
)
from kraftline.storage.time_index import TimeEntry, format_time_index, read_time_index
from kraftline.storage.txn_index import (
    AbortedTxn,
    aborted_between,
    format_txn_index,
    read_txn_index,
)
from tests.fixture_files import name_of
from tests.storage.fixture_files import data_files, dump_lines

PREALLOCATED = 10 * 1024 * 1024


def numbers(line: str) -> list[int]:
    return [int(text) for text in re.findall(r"-?\d+", line)]


@pytest.mark.parametrize("path", data_files("*.index"), ids=name_of)
def test_offset_index_is_what_kafka_says(path: Path) -> None:
    index = read_offset_index(path)
    said = dump_lines(path)
    if said is not None:
        expected = [tuple(numbers(line)) for line in said if line.startswith("offset:")]
        if index.zero_tail:
            # Kafka prints the first slot of an index that has no entry yet.
            expected = [entry for entry in expected if entry[1] != 0]
        assert [(entry.offset, entry.position) for entry in index] == expected
    again = format_offset_index(index.base_offset, index, zero_tail=index.zero_tail)
    assert again == path.read_bytes()
    check_within(index, path.with_suffix(".log").stat().st_size)


@pytest.mark.parametrize("path", data_files("*.timeindex"), ids=name_of)
def test_time_index_is_what_kafka_says(path: Path) -> None:
    index = read_time_index(path)
    said = dump_lines(path)
    if said is not None:
        expected = [tuple(numbers(line)) for line in said if line.startswith("timestamp:")]
        if index.zero_tail:
            expected = [entry for entry in expected if entry[0] != 0]
        assert [(entry.timestamp, entry.offset) for entry in index] == expected
    again = format_time_index(index.base_offset, index, zero_tail=index.zero_tail)
    assert again == path.read_bytes()


@pytest.mark.parametrize("path", data_files("*.txnindex"), ids=name_of)
def test_transaction_index_is_what_kafka_says(path: Path) -> None:
    entries = read_txn_index(path)
    said = dump_lines(path)
    if said is not None:
        expected = [numbers(line)[1:] for line in said if line.startswith("version:")]
        assert [
            [e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset] for e in entries
        ] == expected
    assert format_txn_index(entries) == path.read_bytes()


rising = st.lists(st.integers(1, 2**31 - 1), unique=True, max_size=50).map(sorted)


@given(st.integers(0, 2**40), rising, st.data())
def test_offset_index_round_trip_and_lookup(
    base: int, relative: list[int], data: st.DataObject
) -> None:
    positions = sorted(
        data.draw(
            st.lists(
                st.integers(1, 2**31 - 1),
                unique=True,
                min_size=len(relative),
                max_size=len(relative),
            )
        )
    )
    entries = [
        OffsetEntry(base + offset, at) for offset, at in zip(relative, positions, strict=True)
    ]
    tail = data.draw(st.sampled_from([0, 8, 800]))
    index = read_offset_index(format_offset_index(base, entries, zero_tail=tail), base)
    assert list(index) == entries
    assert index.zero_tail == tail
    target = data.draw(st.integers(base - 5, base + 2**31))
    expected = max((e for e in entries if e.offset <= target), key=lambda e: e.offset, default=None)
    assert offset_index.lookup(index, target) == (expected or OffsetEntry(base, 0))


@given(st.integers(0, 2**40), st.lists(st.integers(0, 2**62), unique=True, max_size=50), st.data())
def test_time_index_round_trip_and_lookup(base: int, times: list[int], data: st.DataObject) -> None:
    times.sort()
    relative = sorted(
        data.draw(
            st.lists(
                st.integers(1, 2**31 - 1), unique=True, min_size=len(times), max_size=len(times)
            )
        )
    )
    entries = [TimeEntry(t, base + offset) for t, offset in zip(times, relative, strict=True)]
    index = read_time_index(format_time_index(base, entries, zero_tail=24), base)
    assert list(index) == entries
    target = data.draw(st.integers(-2, 2**62))
    expected = max(
        (e for e in entries if e.timestamp <= target), key=lambda e: e.timestamp, default=None
    )
    assert time_index.lookup(index, target) == (expected or TimeEntry(-1, base))


def test_a_fresh_preallocated_index_has_no_entries() -> None:
    assert len(read_offset_index(bytes(PREALLOCATED))) == 0
    assert read_offset_index(bytes(PREALLOCATED)).zero_tail == PREALLOCATED
    assert len(read_time_index(bytes(PREALLOCATED // 12 * 12))) == 0


@pytest.mark.parametrize("tail", [0, 8, 65528, 65536, 65544, 3 * 65536])
@pytest.mark.parametrize("count", [1, 5, 8191, 8192, 8193])
def test_what_is_preallocated_is_told_from_entries_that_end_in_zeros(count: int, tail: int) -> None:
    # Positions are multiples of 256, so that every entry ends in a zero.
    entries = [OffsetEntry(n, 256 * n) for n in range(1, count + 1)]
    index = read_offset_index(format_offset_index(0, entries, zero_tail=tail), 0)
    assert list(index) == entries
    assert index.zero_tail == tail


def test_one_record_of_time_zero_is_an_entry_of_a_closed_time_index() -> None:
    assert list(read_time_index(bytes(12), 5)) == [TimeEntry(0, 5)]
    assert read_time_index(bytes(12), 5).zero_tail == 0


def test_the_first_time_entry_may_have_the_base_offset() -> None:
    data = format_time_index(7, [TimeEntry(99, 7)], zero_tail=120)
    assert list(read_time_index(data, 7)) == [TimeEntry(99, 7)]


def test_entries_after_a_hole_are_corrupt() -> None:
    data = format_offset_index(0, [OffsetEntry(5, 4100)]) + bytes(8) + b"\0\0\0\x09\0\0\x20\0"
    with pytest.raises(Corrupt, match="position 8"):
        read_offset_index(data)


@pytest.mark.parametrize(
    ("entries", "position"),
    [
        ([(5, 4100), (5, 8200)], 8),
        ([(5, 4100), (6, 4100)], 8),
        ([(5, 4100), (7, 8200), (6, 9000)], 16),
        ([(-5, 4100)], 0),
        ([(5, -1)], 0),
    ],
)
def test_offset_entries_must_rise(entries: list[tuple[int, int]], position: int) -> None:
    data = format_offset_index(0, [OffsetEntry(*entry) for entry in entries])
    with pytest.raises(Corrupt) as caught:
        read_offset_index(data)
    assert caught.value.position == position


def test_a_cut_index_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="multiple"):
        read_offset_index(bytes(9))
    with pytest.raises(Corrupt, match="multiple"):
        read_time_index(bytes(13))


def test_an_index_past_its_segment_is_corrupt() -> None:
    index = read_offset_index(format_offset_index(0, [OffsetEntry(5, 4100)]))
    check_within(index, 4101)
    with pytest.raises(Corrupt, match="4100 bytes"):
        check_within(index, 4100)


def test_a_full_index_is_read_quickly() -> None:
    count = PREALLOCATED // 8
    data = format_offset_index(0, [OffsetEntry(n, n * 4) for n in range(1, count + 1)])
    assert len(read_offset_index(data)) == count


def test_transaction_index_refuses_other_versions_and_order() -> None:
    good = format_txn_index([AbortedTxn(1, 2, 10, 11)])
    with pytest.raises(Unsupported):
        read_txn_index(b"\0\x01" + good[2:])
    with pytest.raises(Corrupt):
        read_txn_index(good + good)
    with pytest.raises(Corrupt):
        read_txn_index(good, base_offset=11)
    with pytest.raises(Truncated):
        read_txn_index(good[:-1])


def test_aborted_transactions_of_a_range() -> None:
    entries = [AbortedTxn(1, 0, 10, 11), AbortedTxn(2, 5, 20, 12), AbortedTxn(3, 30, 40, 41)]
    assert aborted_between(entries, 11, 12) == ((entries[1],), True)
    assert aborted_between(entries, 0, 100) == (tuple(entries), False)
    assert aborted_between(entries, 41, 42) == ((), False)

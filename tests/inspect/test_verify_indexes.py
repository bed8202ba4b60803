"""Indexes at odds with their log."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.inspect.damage import (
    LOG,
    METADATA,
    TOPICS,
    cleanly_stopped,
    codes,
    copy,
    cut,
    findings,
    notes,
    patch,
)

NAME = "00000000000000000003"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return cleanly_stopped(copy(TOPICS / "transactions-0", tmp_path))


def entries(path: Path, layout: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(layout, path.read_bytes()))


def test_an_entry_that_points_between_batches_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.index"
    (_, position), *_ = entries(index, ">ii")
    patch(index, 4, struct.pack(">i", position + 3))
    (found,) = findings(partition)
    assert (found.code, found.file, found.position) == ("index-position", str(index), 0)
    assert "Delete the .index" in found.meaning


def test_an_entry_whose_offset_does_not_fit_its_batch_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.index"
    patch(index, 0, struct.pack(">i", 1))
    assert codes(partition) == ["index-offset"]


def test_an_entry_past_the_end_of_the_log_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.index"
    with index.open("ab") as file:
        file.write(struct.pack(">ii", 1000, 1_000_000))
    (found,) = findings(partition)
    assert found.code == "index-past-end"
    assert "1000000" in found.problem


def test_the_words_say_so_where_kafka_rebuilds_an_index_anyway(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    with (partition / f"{NAME}.index").open("ab") as file:
        file.write(struct.pack(">ii", 1000, 1_000_000))
    (found,) = findings(partition)
    assert "builds this index anew" in found.meaning


def test_an_offset_that_the_log_does_not_reach_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.index"
    last = index.stat().st_size - 8
    patch(index, last, struct.pack(">i", 5000))
    assert codes(partition) == ["index-offset"]


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_index_of_an_odd_size_is_found(partition: Path, suffix: str) -> None:
    index = partition / f"{NAME}.{suffix}"
    cut(index, index.stat().st_size - 3)
    assert codes(partition) == ["index-size"]


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_entries_that_do_not_rise_are_found(partition: Path, suffix: str) -> None:
    index = partition / f"{NAME}.{suffix}"
    size = 8 if suffix == "index" else 12
    data = index.read_bytes()
    index.write_bytes(data[size : 2 * size] + data[:size] + data[2 * size :])
    assert codes(partition) == ["index-order"]


def test_a_preallocated_index_after_a_clean_stop_is_found(partition: Path) -> None:
    with (partition / f"{NAME}.index").open("ab") as file:
        file.write(bytes(80))
    assert codes(partition) == ["index-tail"]


def test_a_preallocated_index_of_a_running_broker_is_fine(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    with (partition / f"{NAME}.index").open("ab") as file:
        file.write(bytes(80))
    assert codes(partition) == []


def test_a_time_that_the_log_does_not_have_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.timeindex"
    first, *_ = entries(index, ">qi")
    patch(index, 0, struct.pack(">q", first[0] - 1))
    (found,) = findings(partition)
    assert (found.code, found.file) == ("timeindex-timestamp", str(index))


def test_a_time_with_the_offset_of_another_batch_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.timeindex"
    first, *_ = entries(index, ">qi")
    patch(index, 8, struct.pack(">i", first[1] - 1))
    assert codes(partition) == ["timeindex-timestamp"]


def test_times_past_the_end_of_the_log_are_found(partition: Path) -> None:
    with (partition / f"{NAME}.timeindex").open("ab") as file:
        file.write(struct.pack(">qi", 2**50, 4000))
    assert codes(partition) == ["index-past-end"]


@pytest.mark.parametrize("left", [0, 1])
def test_a_time_index_that_lacks_the_newest_time_of_a_closed_segment_is_found(
    partition: Path, left: int
) -> None:
    index = partition / f"{NAME}.timeindex"
    newest, _ = entries(index, ">qi")[-1]
    cut(index, left * 12)
    (found,) = findings(partition)
    assert (found.code, found.file, found.position) == (
        "timeindex-timestamp",
        str(index),
        left * 12,
    )
    assert str(newest) in found.problem
    assert "Delete the .index" in found.meaning


def test_a_time_index_of_a_running_broker_may_lag(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    cut(partition / f"{NAME}.timeindex", 12)
    assert codes(partition) == []


@pytest.mark.parametrize(
    ("suffix", "words"), [("timeindex", "makes an empty one"), ("index", "Kafka builds one")]
)
def test_a_missing_index_is_a_note(partition: Path, suffix: str, words: str) -> None:
    (partition / f"{NAME}.{suffix}").unlink()
    assert codes(partition) == []
    (note,) = notes(partition)
    assert words in note.problem


def test_an_aborted_transaction_without_its_marker_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.txnindex"
    (first, *_) = entries(index, ">hqqqq")
    patch(index, 18, struct.pack(">q", first[3] - 1))
    found = findings(partition)
    assert {f.code for f in found} == {"txnindex-entry"}
    assert any("no ABORT marker" in f.problem for f in found)


def test_an_aborted_transaction_of_another_producer_is_found(partition: Path) -> None:
    patch(partition / f"{NAME}.txnindex", 2, struct.pack(">q", 4242))
    (found,) = findings(partition)
    assert found.code == "txnindex-entry"
    assert "4242" in found.problem


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (10, -3, "begins at offset -3, which is negative"),
        (10, 1 << 40, "behind its end"),
        (26, -1, "last stable offset -1"),
        (26, 1 << 40, f"last stable offset {1 << 40}"),
    ],
)
def test_offsets_of_an_aborted_transaction_that_cannot_be_are_found(
    partition: Path, field: int, value: int, words: str
) -> None:
    patch(partition / f"{NAME}.txnindex", field, struct.pack(">q", value))
    (found,) = findings(partition)
    assert found.code == "txnindex-entry"
    assert words in found.problem


@pytest.mark.parametrize(("at", "move", "words"), [(0, 1, "has data from"), (1, -12, "ended at")])
def test_an_aborted_transaction_that_begins_elsewhere_than_its_data_is_found(
    partition: Path, at: int, move: int, words: str
) -> None:
    index = partition / f"{NAME}.txnindex"
    known = entries(index, ">hqqqq")
    patch(index, 34 * at + 10, struct.pack(">q", known[at][2] + move))
    (found,) = findings(partition)
    assert (found.code, found.position) == ("txnindex-entry", 34 * at)
    assert words in found.problem


def test_a_marker_that_the_index_does_not_know_is_found(partition: Path) -> None:
    index = partition / f"{NAME}.txnindex"
    cut(index, index.stat().st_size - 34)
    (found,) = findings(partition)
    assert found.code == "txnindex-entry"
    assert "is not in the index" in found.problem


def test_an_index_alone_is_compared_with_the_log_beside_it(partition: Path) -> None:
    index = partition / f"{NAME}.index"
    assert codes(index) == []
    patch(index, 4, struct.pack(">i", 7))
    assert codes(index) == ["index-position"]


@pytest.mark.parametrize(
    ("suffix", "data", "code"),
    [
        ("index", bytes(7), "index-size"),
        ("index", struct.pack(">iiii", 9, 90, 8, 80), "index-order"),
        ("timeindex", struct.pack(">qiqi", 1000, 5, 999, 6), "index-order"),
        ("txnindex", struct.pack(">hqqqq", 7, 1, 2, 3, 4), "index-order"),
    ],
)
def test_an_index_without_its_log_is_still_read(
    tmp_path: Path, suffix: str, data: bytes, code: str
) -> None:
    index = tmp_path / f"{NAME}.{suffix}"
    index.write_bytes(data)
    assert codes(index) == [code]
    index.write_bytes(b"")
    assert codes(index) == []


def test_every_flipped_byte_of_an_index_is_noticed_or_harmless(tmp_path: Path) -> None:
    partition = cleanly_stopped(copy(METADATA / "__cluster_metadata-0", tmp_path))
    index = partition / LOG.replace(".log", ".index")
    whole = index.read_bytes()
    assert whole
    for at in range(len(whole)):
        index.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        found = codes(index)
        # An offset may name any batch of those that were appended with the first one.
        assert found or at % 8 < 4, at

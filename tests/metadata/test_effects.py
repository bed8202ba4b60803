"""Which records take effect together, and at which offset."""

from __future__ import annotations

import pytest

from kraftline.errors import Corrupt
from kraftline.metadata.loader import (
    CollectedFaults,
    MetadataBatch,
    Replay,
    Unreadable,
    effects,
    images_at,
    part_of,
)
from kraftline.schema.metadata import NoOpRecord
from tests.metadata.loading import ABORT, BEGIN, END, VERSION, batch, names, topic


def told(*batches: MetadataBatch) -> list[tuple[list[int], int | None, str | None]]:
    """(offsets of records, where their transaction ended, why they did not count)."""
    faults = CollectedFaults()
    found = [
        ([record.offset for record in each.records], each.marker, each.dropped)
        for each in effects(batches, faults)
    ]
    assert not faults.faults
    return found


def test_a_batch_takes_effect_record_by_record() -> None:
    assert told(batch(0, VERSION, topic("a")), batch(2, topic("b"))) == [
        ([0, 1], None, None),
        ([2], None, None),
    ]


def test_a_transaction_takes_effect_at_its_end_whatever_its_batches() -> None:
    log = batch(0, VERSION, BEGIN, topic("a")), batch(3, topic("b")), batch(4, END, topic("c"))
    assert told(*log) == [([0], None, None), ([2, 3], 4, None), ([5], None, None)]


def test_of_an_aborted_transaction_and_of_an_open_one_nothing_does() -> None:
    log = batch(0, BEGIN, topic("a"), ABORT), batch(3, BEGIN, topic("b"))
    assert told(*log) == [([], 2, "aborted: test"), ([], None, "open")]


def test_records_that_do_nothing_are_left_out() -> None:
    assert told(batch(0, NoOpRecord(), topic("a"), NoOpRecord())) == [([1], None, None)]


def test_what_cannot_be_read_or_has_no_place_is_a_fault() -> None:
    faults = CollectedFaults()
    odd = Unreadable(b"\x01", Corrupt("cut off"))
    (first, second) = effects([batch(0, VERSION, odd, END, topic("a"))], faults)
    assert [record.offset for record in first.records] == [0]
    assert [record.offset for record in second.records] == [3]
    assert [fault.offset for fault in faults.faults] == [1, 2]


@pytest.mark.parametrize("offsets", [[1], [0, 0, 2], [1, 3, 4, 5], [2, 99], []])
def test_images_at_offsets_are_those_of_a_replay_up_to_each(offsets: list[int]) -> None:
    log = [batch(0, VERSION, topic("a"), BEGIN, topic("b")), batch(4, END, topic("c"))]
    expected = {0: "", 1: "a", 2: "a", 3: "a", 4: "ab"}
    images = list(images_at(Replay(lazily=True), log, offsets))
    assert ["".join(names(image)) for image in images] == [
        expected.get(offset, "abc") for offset in offsets
    ]


def test_a_part_of_a_batch_keeps_its_offsets() -> None:
    whole = batch(10, *(topic(name) for name in "abcd"))
    assert part_of(whole, 0, 99) is whole
    part = part_of(whole, 11, 12)
    assert (part.base_offset, part.last_offset) == (11, 12)
    assert part.records == (topic("b"), topic("c"))
    assert part_of(whole, 14, 20).records == ()

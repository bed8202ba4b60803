"""Metadata transactions take effect at their End, and an Abort leaves nothing of them."""

from __future__ import annotations

import pytest

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image import MetadataImage, Provenance
from kraftline.metadata.loader import LogDeltaManifest, MetadataBatch, Replay, image_of
from kraftline.metadata.loader.transactions import TransactionState as State
from kraftline.metadata.loader.transactions import after_marker, after_record
from kraftline.schema.metadata import RemoveTopicRecord
from kraftline.schema.types import Message
from tests.metadata.loading import ABORT, BEGIN, END, VERSION, batch, names, topic


def replayed(*batches: MetadataBatch) -> tuple[list[MetadataImage], Replay]:
    """The images that one commit of these batches publishes."""
    replay = Replay()
    found = [each.image for b in batches for each in replay.take(b)]
    return found + [each.image for each in replay.flush()], replay


@pytest.mark.parametrize(
    ("state", "record", "after"),
    [
        (State.NONE, BEGIN, State.STARTED),
        (State.ENDED, BEGIN, State.STARTED),
        (State.ABORTED, BEGIN, State.STARTED),
        (State.STARTED, END, State.ENDED),
        (State.CONTINUED, END, State.ENDED),
        (State.STARTED, ABORT, State.ABORTED),
        (State.CONTINUED, ABORT, State.ABORTED),
    ],
)
def test_marker_moves_the_state(state: State, record: Message, after: State) -> None:
    assert after_marker(state, record) is after


@pytest.mark.parametrize(
    ("state", "record", "words"),
    [
        (State.STARTED, BEGIN, "Encountered BeginTransactionRecord while already in a transaction"),
        (
            State.CONTINUED,
            BEGIN,
            "Encountered BeginTransactionRecord while already in a transaction",
        ),
        *(
            (
                state,
                record,
                f"Encountered {type(record).__name__} without having seen a BeginTransactionRecord",
            )
            for state in (State.NONE, State.ENDED, State.ABORTED)
            for record in (END, ABORT)
        ),
    ],
)
def test_misplaced_marker_is_the_error_kafka_gives(
    state: State, record: Message, words: str
) -> None:
    with pytest.raises(ReplayError) as error:
        after_marker(state, record)
    assert error.value.reason == words


def test_other_records_move_the_state() -> None:
    assert after_record(State.STARTED) is State.CONTINUED
    assert after_record(State.CONTINUED) is State.CONTINUED
    assert {after_record(s) for s in (State.NONE, State.ENDED, State.ABORTED)} == {State.NONE}


def test_end_outside_a_transaction_is_a_fault_and_the_rest_goes_on() -> None:
    images, replay = replayed(batch(0, VERSION, END, topic("a")))
    assert names(images[-1]) == ["a"]
    (fault,) = replay.faults.faults
    assert fault.offset == 1
    assert str(fault) == (
        "Error loading metadata log record from offset 1: Encountered EndTransactionRecord "
        "without having seen a BeginTransactionRecord. The record: EndTransactionRecord{}"
    )


def test_begin_inside_a_transaction_is_a_fault_and_the_first_goes_on() -> None:
    images, replay = replayed(batch(0, VERSION), batch(1, BEGIN, topic("a"), BEGIN, END))
    assert [fault.offset for fault in replay.faults.faults] == [3]
    assert [names(image) for image in images] == [[], ["a"]]


def test_open_transaction_publishes_nothing() -> None:
    replay = Replay()
    assert not replay.take(batch(0, BEGIN, VERSION))
    assert not replay.flush()
    assert not replay.take(batch(2, topic("a")))
    assert not replay.flush()
    assert replay.transaction is not None
    replay.take(batch(3, END))
    (published,) = replay.flush()
    assert names(published.image) == ["a"]
    assert published.image.provenance == Provenance(3, 1, 30, True)


def test_all_batches_of_a_transaction_are_counted_in_its_publication() -> None:
    replay = Replay()
    for each in (batch(0, BEGIN, VERSION, size=7), batch(2, topic("a"), size=8)):
        replay.take(each)
        replay.flush()
    replay.take(batch(3, END, size=9))
    (published,) = replay.flush()
    manifest = published.manifest
    assert isinstance(manifest, LogDeltaManifest)
    assert (manifest.batches, manifest.bytes) == (3, 24)
    assert manifest.elapsed_ns > 0


def test_begin_mid_batch_publishes_first_with_unaligned_provenance() -> None:
    images, _ = replayed(batch(0, VERSION, topic("a"), BEGIN, topic("b")), batch(4, END))
    assert [names(image) for image in images] == [["a"], ["a", "b"]]
    assert [image.provenance for image in images] == [
        Provenance(1, 1, 0, False),
        Provenance(4, 1, 40, True),
    ]


def test_begin_first_in_its_batch_publishes_first_with_aligned_provenance() -> None:
    images, _ = replayed(batch(0, VERSION, topic("a")), batch(2, BEGIN, topic("b"), END, epoch=2))
    assert [image.provenance for image in images] == [
        # Epoch and time are of the batch that the image ends in.
        Provenance(1, 1, 0, True),
        Provenance(4, 2, 20, True),
    ]


def test_begin_as_the_first_record_since_the_last_publication_publishes_nothing() -> None:
    images, _ = replayed(batch(0, BEGIN, VERSION, END))
    assert [image.offset for image in images] == [2]


def test_abort_drops_everything_since_begin() -> None:
    images, _ = replayed(
        batch(0, VERSION, topic("a")), batch(2, BEGIN, topic("b")), batch(4, topic("c"), ABORT)
    )
    assert [names(image) for image in images] == [["a"], ["a"]]
    assert images[-1].provenance == Provenance(5, 1, 40, True)


def test_abort_drops_everything_even_if_a_record_follows_in_the_same_commit() -> None:
    images, _ = replayed(
        batch(0, VERSION, topic("a"), BEGIN, topic("b"), ABORT, topic("c")), batch(6, topic("d"))
    )
    assert names(images[-1]) == ["a", "c", "d"]


def test_second_transaction_of_a_commit_stands_after_an_aborted_one() -> None:
    images, _ = replayed(batch(0, VERSION, BEGIN, topic("a"), ABORT, BEGIN, topic("b"), END))
    assert [names(image) for image in images] == [[], [], ["b"]]


def test_faulty_record_of_a_transaction_is_told_with_its_own_offset() -> None:
    _, replay = replayed(
        batch(0, VERSION, BEGIN),
        batch(2, topic("a")),
        batch(3, _unknown(), topic("b")),
        batch(5, END),
    )
    assert [fault.offset for fault in replay.faults.faults] == [3]
    assert names(replay.image) == ["a", "b"]


def test_faulty_record_of_a_transaction_is_told_when_it_is_read() -> None:
    replay = Replay()
    replay.take(batch(0, VERSION, BEGIN, _unknown()))
    assert [fault.offset for fault in replay.faults.faults] == [2]
    replay.take(batch(3, topic("a"), ABORT))
    replay.flush()
    assert len(replay.faults.faults) == 1
    assert not names(replay.image)


def test_who_wants_only_the_last_image_hears_nothing_of_an_aborted_transaction() -> None:
    replay = Replay(lazily=True)
    replay.take(batch(0, VERSION, BEGIN, _unknown(), ABORT))
    replay.flush()
    assert not replay.faults.faults


@pytest.mark.parametrize("as_of", range(9))
def test_as_of_an_offset_every_record_before_has_taken_effect(as_of: int) -> None:
    log = [
        batch(0, VERSION, topic("a"), BEGIN, topic("b")),
        batch(4, END, topic("c")),
        batch(6, BEGIN, topic("d"), ABORT),
    ]
    expected = {0: "", 1: "a", 2: "a", 3: "a", 4: "ab", 5: "abc"}.get(as_of, "abc")
    image = image_of(log, as_of=as_of)
    assert names(image) == list(expected)
    assert image.offset == {2: 1, 3: 1, 6: 5, 7: 5}.get(as_of, as_of)
    assert image.provenance.batch_aligned == (as_of in (5, 6, 7, 8))


def _unknown() -> Message:
    return RemoveTopicRecord()

"""Which of several nodes' copies of a partition is read."""

from __future__ import annotations

import pytest

from kraftline.errors import KraftlineError
from kraftline.spark.inputs import InputFile, InputKind
from kraftline.spark.segment_survey import DAMAGE, DATA, PieceCount
from kraftline.spark.sources.segment_logs import PartitionLog
from kraftline.spark.topic_data.copies import one_copy


def log(node: str, *bases: int, cluster: str | None = None) -> PartitionLog:
    """A node's copy of orders-0, with segments from these offsets on."""
    directory = f"{node}/orders-0"
    segments = [
        InputFile(
            path=f"{directory}/{base:020}.log",
            kind=InputKind.SEGMENT,
            size=1000,
            modified=0,
            directory=directory,
            offset=base,
            topic="orders",
            cluster_id=cluster,
        )
        for base in bases
    ]
    return PartitionLog(directory, "orders", 0, tuple(segments))


def holds(log: PartitionLog, start: int, end: int, epoch: int = 0, part: int = 0) -> PieceCount:
    return PieceCount(
        topic="orders",
        partition=0,
        file=log.segments[part].path,
        kind=DATA,
        from_position=0,
        to_position=1000,
        from_offset=start,
        to_offset=end,
        leader_epoch=epoch,
        records=end - start,
    )


def damaged(log: PartitionLog) -> PieceCount:
    return PieceCount(
        topic="orders",
        partition=0,
        file=log.segments[0].path,
        kind=DAMAGE,
        from_position=100,
        to_position=200,
    )


def test_it_is_the_one_that_reaches_furthest_however_segments_are_cut() -> None:
    cut, ahead = log("a", 0, 60), log("b", 0)
    counts = [holds(cut, 0, 60), holds(cut, 60, 90, part=1), holds(ahead, 0, 120)]
    assert one_copy([cut, ahead], counts) == ([ahead], [cut.directory])


def test_what_an_earlier_leader_has_beyond_it_was_never_replicated() -> None:
    left, led = log("a", 0), log("b", 0)
    counts = [holds(left, 0, 120, epoch=4), holds(led, 0, 90, epoch=5)]
    assert one_copy([left, led], counts) == ([led], [left.directory])


@pytest.mark.parametrize("bad", [0, 1])
def test_a_sound_one_wins_among_those_that_reach_as_far(bad: int) -> None:
    copies = [log("a", 0), log("b", 0)]
    counts = [*(holds(copy, 0, 90) for copy in copies), damaged(copies[bad])]
    assert one_copy(copies, counts) == ([copies[1 - bad]], [copies[bad].directory])


def test_an_empty_copy_is_one_too() -> None:
    empty, other = log("a", 0), log("b", 0)
    assert one_copy([empty, other], [holds(other, 0, 9)]) == ([other], [empty.directory])
    assert one_copy([empty], []) == ([empty], [])


def test_partitions_of_two_clusters_are_no_copies() -> None:
    with pytest.raises(KraftlineError, match="a/orders-0 and b/orders-0 are of different clusters"):
        one_copy([log("a", 0, cluster="x"), log("b", 0, cluster="y")], [])

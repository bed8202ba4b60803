"""Which copy is read where: tables of surveys, and the plans that come of them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from kraftline.spark.inputs import InputFile, InputKind
from kraftline.spark.plan import ClusterPlan, Piece, plan_cluster
from kraftline.spark.reached import Reached
from kraftline.spark.survey import DAMAGE, RUN, SurveyRow
from kraftline.spark.survey_rows import SNAPSHOT

_BYTES = 100  # of a record, in these files
Epochs = list[tuple[int, int, int]]


class Surveyed(NamedTuple):
    file: InputFile
    rows: list[SurveyRow]


def log(node: int, *runs: tuple[int, int, int], damage: tuple[int, int] | None = None) -> Surveyed:
    """A segment with runs (epoch, from, to). The time of an offset is a thousand times as much."""
    path = f"node-{node}/{runs[0][1]:020d}.log"
    rows = [
        SurveyRow(
            file=path,
            what=RUN,
            from_position=(first - runs[0][1]) * _BYTES,
            to_position=(end - runs[0][1]) * _BYTES,
            from_offset=first,
            to_offset=end,
            epoch=epoch,
            records=end - first,
            first_time=first * 1000,
            max_time=(end - 1) * 1000,
        )
        for epoch, first, end in runs
    ]
    if damage is not None:
        first, end = damage
        rows.append(
            SurveyRow(
                file=path,
                what=DAMAGE,
                from_position=(first - runs[0][1]) * _BYTES,
                to_position=(end - runs[0][1]) * _BYTES,
                from_offset=first,
                to_offset=end,
                reason="the checksum is wrong",
            )
        )
    return Surveyed(_file(path, InputKind.SEGMENT, node, runs[0][1]), rows)


def snapshot(node: int, end: int, epoch: int = 1, *, whole: bool = True) -> Surveyed:
    path = f"node-{node}/{end:020d}-{epoch:010d}.checkpoint"
    row = SurveyRow(
        file=path,
        what=SNAPSHOT if whole else DAMAGE,
        to_position=500,
        to_offset=end,
        epoch=epoch,
        max_time=(end - 1) * 1000,
        reason=None if whole else "cut",
    )
    return Surveyed(_file(path, InputKind.SNAPSHOT, node, end, epoch), [row])


def _file(path: str, kind: InputKind, node: int, offset: int, epoch: int = -1) -> InputFile:
    return InputFile(
        path=path,
        kind=kind,
        size=1,
        modified=1,
        directory=f"node-{node}",
        offset=offset,
        epoch=epoch,
        cluster_id="c",
        node=node,
    )


def plan_of(*surveyed: Surveyed, known: Reached | None = None) -> ClusterPlan:
    """Plan as a build does: runs are cut where the plan asks for it."""
    found = {each.file.path: list(each.rows) for each in surveyed}
    tried: set[tuple[str, int]] = set()
    while True:
        files = [each.file for each in surveyed]
        plan = plan_cluster("c", files, found, known, frozenset(tried))
        if not plan.cuts:
            return plan
        for row, offsets in plan.cuts.items():
            rows = found[row.file]
            at = rows.index(row)
            bounds = [row.from_offset or 0, *offsets, row.to_offset or 0]
            epochs = [(row.epoch, a, b) for a, b in pairwise(bounds)]
            rows[at : at + 1] = log(int(row.file[5]), *epochs).rows
            tried |= {(row.file, offset) for offset in offsets}


def read(plan: ClusterPlan) -> list[tuple[int | None, str, int, int]]:
    """What is read: leg, file (its directory for a segment), offsets; neighbours are one."""
    out: list[tuple[int | None, str, int, int]] = []
    for piece in plan.pieces:
        name = "snapshot" if piece.in_snapshot else piece.file.split("/")[0] or "lake"
        last = out[-1] if out else None
        if last and last[:2] == (piece.leg, name) and last[3] == piece.from_offset:
            out[-1] = (*last[:3], piece.to_offset)
        else:
            out.append((piece.leg, name, piece.from_offset, piece.to_offset))
    return out


def covered(plan: ClusterPlan) -> list[tuple[str, int, int]]:
    return [(row.how, row.from_offset, row.to_offset) for row in plan.coverage]


def conflicts(plan: ClusterPlan) -> list[tuple[str, int | None, int | None]]:
    return [
        (row.file[:6], row.from_offset, row.to_offset)
        for row in plan.quarantine
        if row.kind == "conflict"
    ]


def test_one_log_from_its_start_is_one_leg() -> None:
    plan = plan_of(log(1, (1, 0, 50), (2, 50, 80)), log(1, (2, 80, 100)), snapshot(1, 60))
    assert read(plan) == [(0, "node-1", 0, 100)]
    assert covered(plan) == [("log", 0, 100)]
    assert plan.committed_to == 60
    leg = plan.legs[0]
    assert (leg.base_offset, leg.base_time, leg.end_offset, leg.end_time) == (0, 0, 100, 99_000)
    assert [piece.time for piece in plan.pieces] == [-1, 49_000, 79_000]


def test_three_copies_of_one_log_are_read_once() -> None:
    longest = log(1, (1, 0, 41), (2, 41, 101))
    plan = plan_of(longest, log(2, (1, 0, 41), (2, 41, 90)), log(3, (1, 0, 30)))
    assert read(plan) == [(0, "node-1", 0, 101)]
    assert conflicts(plan) == []


def test_the_longest_copy_goes_on_where_another_ends() -> None:
    plan = plan_of(log(1, (1, 0, 60)), log(2, (1, 0, 40), (1, 40, 90)))
    assert read(plan)[-1][3] == 90
    assert covered(plan) == [("log", 0, 90)]


def test_a_tail_of_a_lower_epoch_has_lost() -> None:
    plan = plan_of(log(1, (1, 0, 120)), log(2, (1, 0, 110), (2, 110, 115)))
    assert covered(plan) == [("log", 0, 115)]
    assert conflicts(plan) == [("node-1", 110, 120)]
    assert all(piece.to_offset <= 110 for piece in plan.pieces if piece.epoch == 1)


def test_of_three_leaders_at_one_offset_the_newest_has_won() -> None:
    plan = plan_of(
        log(1, (1, 0, 100), (2, 100, 130)),
        log(2, (1, 0, 100), (3, 100, 110)),
        log(3, (1, 0, 140)),
    )
    assert covered(plan) == [("log", 0, 110)]
    assert sorted(conflicts(plan)) == [("node-1", 100, 130), ("node-3", 100, 140)]


def test_a_loser_is_cut_where_the_winner_begins_though_its_run_goes_on() -> None:
    plan = plan_of(log(1, (1, 0, 120)), log(2, (2, 110, 115)))
    assert read(plan) == [(0, "node-1", 0, 110), (0, "node-2", 110, 115)]
    [lost] = [row for row in plan.quarantine if row.kind == "conflict"]
    assert (lost.from_position, lost.to_position) == (110 * _BYTES, 120 * _BYTES)


def test_a_missing_middle_is_bridged_by_a_snapshot() -> None:
    plan = plan_of(log(1, (1, 0, 50)), log(1, (1, 80, 120)), snapshot(1, 90))
    assert read(plan) == [
        (0, "node-1", 0, 50),
        (1, "snapshot", 89, 90),
        (1, "node-1", 90, 120),
        (None, "node-1", 80, 90),
    ]
    assert covered(plan) == [
        ("log", 0, 50),
        ("gap", 50, 80),
        ("unbased", 80, 89),
        ("snapshot", 89, 90),
        ("log", 90, 120),
    ]
    second = plan.legs[1]
    assert (second.base_offset, second.base_time, second.end_offset) == (89, 89_000, 120)


def test_a_missing_middle_that_no_snapshot_bridges_leaves_the_rest_unbased() -> None:
    plan = plan_of(log(1, (1, 0, 50)), log(1, (1, 80, 120)), snapshot(1, 40))
    assert read(plan) == [(0, "node-1", 0, 50), (None, "node-1", 80, 120)]
    assert covered(plan) == [("log", 0, 50), ("gap", 50, 80), ("unbased", 80, 120)]
    assert len(plan.legs) == 1


def test_another_copy_fills_the_missing_middle() -> None:
    plan = plan_of(log(1, (1, 0, 50)), log(1, (1, 80, 120)), log(2, (1, 30, 100)))
    assert covered(plan) == [("log", 0, 120)]
    offsets = [(piece.from_offset, piece.to_offset) for piece in plan.pieces]
    assert all(a[1] == b[0] for a, b in pairwise(offsets))


def test_a_log_that_starts_later_begins_with_the_oldest_snapshot_in_it() -> None:
    plan = plan_of(log(1, (3, 1000, 1500)), snapshot(1, 1200), snapshot(1, 1400))
    assert read(plan) == [
        (0, "snapshot", 1199, 1200),
        (0, "node-1", 1200, 1500),
        (None, "node-1", 1000, 1200),
    ]
    assert covered(plan) == [
        ("gap", 0, 1000),
        ("unbased", 1000, 1199),
        ("snapshot", 1199, 1200),
        ("log", 1200, 1500),
    ]
    assert plan.committed_to == 1400


def test_a_log_that_starts_just_behind_a_snapshot_is_all_of_its_leg() -> None:
    plan = plan_of(log(1, (3, 1000, 1500)), snapshot(1, 1000))
    assert covered(plan) == [("gap", 0, 999), ("snapshot", 999, 1000), ("log", 1000, 1500)]


def test_a_log_that_starts_later_without_a_snapshot_is_unbased() -> None:
    plan = plan_of(log(1, (3, 1000, 1500)))
    assert plan.legs == ()
    assert covered(plan) == [("gap", 0, 1000), ("unbased", 1000, 1500)]
    assert {piece.leg for piece in plan.pieces} == {None}


def test_damage_is_covered_by_another_copy_and_told_of() -> None:
    broken = log(1, (1, 0, 40), (1, 50, 100), damage=(40, 50))
    plan = plan_of(broken, log(2, (1, 0, 60)))
    assert covered(plan) == [("log", 0, 100)]
    assert [(row.kind, row.from_offset, row.to_offset) for row in plan.quarantine] == [
        ("damage", 40, 50)
    ]


def test_damage_that_nothing_covers_is_a_gap() -> None:
    plan = plan_of(log(1, (1, 0, 40), (1, 50, 100), damage=(40, 50)), snapshot(1, 70))
    assert covered(plan) == [
        ("log", 0, 40),
        ("gap", 40, 50),
        ("unbased", 50, 69),
        ("snapshot", 69, 70),
        ("log", 70, 100),
    ]


def test_snapshots_alone_are_legs_of_one_offset_each() -> None:
    plan = plan_of(snapshot(1, 100), snapshot(2, 100), snapshot(1, 200))
    assert read(plan) == [(0, "snapshot", 99, 100), (1, "snapshot", 199, 200)]
    assert covered(plan) == [
        ("gap", 0, 99),
        ("snapshot", 99, 100),
        ("gap", 100, 199),
        ("snapshot", 199, 200),
    ]
    assert [(leg.base_offset, leg.end_offset) for leg in plan.legs] == [(99, 100), (199, 200)]


def test_a_damaged_snapshot_is_no_base_but_another_nodes_copy_of_it_is() -> None:
    plan = plan_of(snapshot(1, 100, whole=False), snapshot(2, 100), log(1, (1, 100, 110)))
    assert covered(plan)[-2:] == [("snapshot", 99, 100), ("log", 100, 110)]
    assert [row.kind for row in plan.quarantine] == ["damage"]


def test_times_never_go_back_from_piece_to_piece() -> None:
    late = log(1, (1, 0, 50))
    late.rows[0] = replace(late.rows[0], max_time=500_000)
    plan = plan_of(late, log(1, (1, 50, 100)))
    assert [piece.time for piece in plan.pieces] == [-1, 500_000]
    assert plan.legs[0].end_time == 500_000


# A second run: what the lake has already.


def test_a_second_run_reads_only_what_is_new() -> None:
    first = plan_of(log(1, (1, 0, 50)))
    plan = plan_of(log(1, (1, 0, 50), (1, 50, 80)), known=first.reached)
    assert read(plan) == [(0, "node-1", 50, 80)]
    assert not plan.anew
    assert plan.legs[0].continued
    assert plan.pieces[0].time == 49_000


def test_a_run_that_grew_is_read_from_the_offset_reached() -> None:
    first = plan_of(log(1, (1, 0, 50)))
    plan = plan_of(log(1, (1, 0, 80)), known=first.reached)
    assert [(p.from_offset, p.to_offset, p.from_position) for p in plan.pieces] == [(50, 80, 0)]


def test_without_news_nothing_is_read() -> None:
    first = plan_of(log(1, (1, 0, 50)), snapshot(1, 30))
    plan = plan_of(log(2, (1, 0, 50)), snapshot(2, 30), known=first.reached)
    assert plan.pieces == ()
    assert not plan.anew
    assert covered(plan) == covered(first)


def test_segments_that_kafka_deleted_since_stay_known() -> None:
    first = plan_of(log(1, (1, 0, 50)))
    plan = plan_of(log(1, (1, 40, 80)), snapshot(1, 45), known=first.reached)
    assert read(plan) == [(0, "node-1", 50, 80)]
    assert covered(plan) == [("log", 0, 80)]


def test_a_gap_between_two_runs_begins_another_leg() -> None:
    first = plan_of(log(1, (1, 0, 50)))
    plan = plan_of(log(1, (1, 70, 90)), snapshot(1, 70), known=first.reached)
    assert not plan.anew
    assert [leg.continued for leg in plan.legs] == [True, False]
    assert read(plan) == [(1, "snapshot", 69, 70), (1, "node-1", 70, 90)]


def test_an_older_directory_that_fills_a_gap_makes_the_cluster_anew() -> None:
    first = plan_of(log(1, (1, 100, 150)), snapshot(1, 100))
    plan = plan_of(log(2, (1, 0, 110)), known=first.reached)
    assert plan.anew
    assert read(plan) == [(0, "node-2", 0, 110), (0, "lake", 110, 150)]
    assert not plan.legs[0].continued


def test_a_tail_that_was_read_and_has_lost_makes_the_cluster_anew() -> None:
    first = plan_of(log(1, (1, 0, 120)))
    plan = plan_of(log(2, (2, 110, 115)), known=first.reached)
    assert plan.anew
    assert read(plan) == [(0, "lake", 0, 110), (0, "node-2", 110, 115)]
    assert covered(plan) == [("log", 0, 115)]


def test_an_unbased_stretch_that_gets_a_base_makes_the_cluster_anew() -> None:
    first = plan_of(log(1, (1, 100, 150)))
    plan = plan_of(log(1, (1, 100, 150)), snapshot(1, 120), known=first.reached)
    assert plan.anew
    assert covered(plan)[-1] == ("log", 120, 150)


def test_an_unbased_stretch_may_go_on() -> None:
    first = plan_of(log(1, (1, 100, 150)))
    plan = plan_of(log(1, (1, 100, 180)), known=first.reached)
    assert not plan.anew
    assert read(plan) == [(None, "node-1", 150, 180)]


def test_what_is_committed_stays_so() -> None:
    first = plan_of(log(1, (1, 0, 50)), snapshot(1, 40))
    assert plan_of(log(1, (1, 0, 60)), known=first.reached).committed_to == 40


@pytest.mark.parametrize("parts", [(30, 60, 100), (10, 99, 100), (50, 51, 100)])
def test_many_small_runs_come_to_what_one_large_one_does(parts: tuple[int, ...]) -> None:
    known: Reached | None = None
    pieces: list[Piece] = []
    for end in parts:
        plan = plan_of(
            log(1, (1, 0, min(end, 55)), *([(2, 55, end)] if end > 55 else [])), known=known
        )
        pieces += plan.pieces
        known = plan.reached
    whole = plan_of(log(1, (1, 0, 55), (2, 55, 100)))
    assert known == whole.reached
    assert sum(piece.to_offset - piece.from_offset for piece in pieces) == 100

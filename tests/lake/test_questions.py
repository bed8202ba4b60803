"""As of, difference, changes and health, where the answers can be counted on fingers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftline.errors import KraftlineError
from kraftline.inspect.moments import AtOffset, AtTime
from kraftline.lake.coverage import NoAnswer, stand, window
from kraftline.lake.lake import Lake
from kraftline.lake.queries import Chosen
from kraftline.lake.questions import as_of, changes, difference, health, rows_of, timeline
from tests.lake.lakes import covered, span, write_lake


def topic(name: str, first: int, until: int | None = None, cluster: str = "A") -> dict[str, Any]:
    return {"cluster_id": cluster, "topic": name, "topic_id": f"id-{name}", **span(first, until)}


def partition(
    name: str, leader: int, first: int, until: int | None = None, **more: Any
) -> dict[str, Any]:
    return {
        **topic(name, first, until),
        "partition": 0,
        "leader": leader,
        "replicas": [1, 2],
        "isr": [1, 2],
        **more,
    }


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """One cluster; offsets 0 to 99, at the times 0 to 99 seconds."""
    root = tmp_path_factory.mktemp("one")
    write_lake(
        root,
        {
            "topics": [topic("a", 0), topic("b", 10, 20), topic("b.c", 20), topic("b_c", 30)],
            "partitions": [
                partition("a", 1, 0, 40),
                partition("a", 2, 40, isr=[2]),
                partition("b", 1, 10, 20),
                partition("b.c", 1, 20, replicas=[3]),
            ],
            "changes": [
                {
                    "cluster_id": "A",
                    "offset": offset,
                    "time": offset * 1_000_000,
                    "kind": kind,
                    "topic": name,
                    "text": kind,
                    "subject": name,
                    **more,
                }
                for offset, kind, name, more in (
                    (10, "topic.created", "b", {}),
                    (20, "topic.deleted", "b", {}),
                    (40, "leader.moved", "a", {"before": "1", "after": "2", "partition": 0}),
                    (41, "broker.fenced", None, {"broker": 1}),
                )
            ],
            "health": [
                {
                    "cluster_id": "A",
                    "kind": "under-replicated",
                    "topic": "a",
                    "topic_id": "id-a",
                    "partition": 0,
                    **span(40, 60),
                },
                {"cluster_id": "A", "kind": "broker down", "broker": 1, **span(41)},
            ],
            "groups": [{"cluster_id": "A", "group": "g", "kind": "classic", **span(5)}],
            "coverage": [covered("A", 0, 99)],
        },
    )
    return Lake.at(str(root))


@pytest.fixture(scope="module")
def gaps(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A: offsets 0 to 9, a gap, a snapshot at 20 with the log up to 39, a stretch without a base
    from 60 to 69. B: offsets 100 to 200, half an hour later."""
    root = tmp_path_factory.mktemp("gaps")
    write_lake(
        root,
        {
            "topics": [
                topic("lost", 0, 20),
                topic("kept", 0, 20),
                topic("kept", 20),
                topic("other", 100, None, "B"),
            ],
            "coverage": [
                covered("A", 0, 9),
                covered("A", 10, 19, leg=None, how="gap"),
                covered("A", 20, 20, leg=1, how="snapshot"),
                covered("A", 21, 39, leg=1),
                covered("A", 40, 59, leg=None, how="gap"),
                covered("A", 60, 69, leg=None, how="unbased"),
                covered("B", 100, 200),
            ],
        },
    )
    return Lake.at(str(root))


def names(lake: Lake, at: int | None = None, time: int | None = None, *clusters: str) -> list[str]:
    moment = AtTime(time * 1000) if time is not None else None if at is None else AtOffset(at)
    rows = as_of(lake, "topics", stand(lake, moment, clusters))
    return [row["topic"] for row in rows.to_pylist()]


def test_a_row_is_true_from_its_first_offset_to_the_one_before_its_end(one: Lake) -> None:
    assert names(one, 9) == ["a"]
    assert names(one, 10) == ["a", "b"]
    assert names(one, 19) == ["a", "b"]
    assert names(one, 20) == ["a", "b.c"]
    assert names(one) == ["a", "b.c", "b_c"]


def test_a_time_is_that_of_the_log(one: Lake) -> None:
    assert names(one, time=9) == ["a"]
    assert names(one, time=10) == ["a", "b"]
    assert names(one, time=20) == ["a", "b.c"]


def test_beyond_the_end_is_the_end_with_a_note(one: Lake) -> None:
    for moment in (AtOffset(500), AtTime(500_000)):
        standing = stand(one, moment)
        assert as_of(one, "topics", standing)["topic"].to_pylist() == ["a", "b.c", "b_c"]
        (note,) = standing.notes
        assert "this is how it stood there" in note
    assert stand(one, AtOffset(99)).notes == ()


def test_gaps_have_no_answer(gaps: Lake) -> None:
    assert names(gaps, 9, None, "A") == ["kept", "lost"]
    assert names(gaps, 20, None, "A") == ["kept"]
    with pytest.raises(NoAnswer, match=r"offset 12 cannot be answered for \(nobody has") as found:
        names(gaps, 12, None, "A")
    assert "nearest offsets that can are 9 and 20" in str(found.value)
    with pytest.raises(NoAnswer, match=r"no state to start it from\).*nearest .* is 39"):
        names(gaps, 65, None, "A")
    with pytest.raises(NoAnswer, match="the nearest offset that can is 100"):
        names(gaps, 3, None, "B")
    with pytest.raises(NoAnswer, match="nearest offsets that can are 9 and 20"):
        names(gaps, None, 15, "A")


def test_legs_that_overlap_in_time_do_not_mix(tmp_path: Path) -> None:
    """The clock of the second leg began before that of the first one ended."""
    late = {"valid_from_time": 5_000_000, "valid_to_time": None}
    write_lake(
        tmp_path,
        {
            "topics": [
                {**topic("before", 0, 20), "valid_to_time": 30_000_000},
                {**topic("after", 20), **late},
            ],
            "coverage": [
                covered("A", 0, 9, times=(0, 9000)),
                covered("A", 20, 29, leg=1, times=(5000, 12_000)),
            ],
        },
    )
    lake = Lake.at(str(tmp_path))
    assert names(lake, time=4) == ["before"]
    assert names(lake, time=7) == ["after"]


def test_an_offset_is_of_one_cluster(gaps: Lake) -> None:
    with pytest.raises(NoAnswer, match=r"this lake has 2: A, B\. Choose one with --cluster"):
        names(gaps, 5)
    with pytest.raises(NoAnswer, match="has no cluster C; there are A, B"):
        names(gaps, 5, None, "C")


def test_a_time_is_of_all_clusters_that_know_it(gaps: Lake) -> None:
    standing = stand(gaps, AtTime(30_000))
    assert [place.cluster_id for place in standing.places] == ["A"]
    assert any("cluster B is left out" in note for note in standing.notes)
    assert names(gaps, time=150) == ["kept", "other"]
    with pytest.raises(NoAnswer, match=r"cluster A is left out.*cluster B is left out"):
        names(gaps, time=15)


def test_rows_are_chosen_by_topic_and_broker(one: Lake) -> None:
    def chosen(table: str, **by: Any) -> list[str]:
        rows = as_of(one, table, stand(one, AtOffset(50)), Chosen(**by))
        return [row["topic"] for row in rows.to_pylist()]

    assert chosen("topics", topics=("b.c",)) == ["b.c"]
    assert chosen("topics", topics=("b?c",)) == ["b.c", "b_c"]
    assert chosen("topics", topics=("a", "b.*")) == ["a", "b.c"]
    assert chosen("partitions", topics=("b*",)) == ["b.c"]
    assert chosen("partitions", brokers=(2,)) == ["a"]
    assert chosen("partitions", topics=("it's", "[x", "\\", "^", "]")) == []
    assert chosen("topics", topics=("*[^x*", "*\\*", "*]*")) == []
    with pytest.raises(NoAnswer, match="acls has no brokers"):
        chosen("acls", brokers=(1,))


def test_groups_go_by_time(one: Lake) -> None:
    assert as_of(one, "groups", stand(one, AtTime(5000))).num_rows == 1
    assert as_of(one, "groups", stand(one, AtTime(4000))).num_rows == 0
    assert as_of(one, "groups", stand(one, None)).num_rows == 1
    with pytest.raises(NoAnswer, match="groups are known by time"):
        as_of(one, "groups", stand(one, AtOffset(5)))


def test_difference_has_what_came_went_and_changed(one: Lake) -> None:
    rows = rows_of(
        difference(one, "partitions", stand(one, AtOffset(15)), stand(one, AtOffset(50)))
    )
    assert [(row["topic"], row["change"]) for row in rows] == [
        ("a", "changed"),
        ("b", "removed"),
        ("b.c", "added"),
    ]
    assert (rows[0]["before_leader"], rows[0]["after_leader"]) == (1, 2)
    assert (rows[0]["before_isr"], rows[0]["after_isr"]) == ([1, 2], [2])
    assert rows[2]["before_replicas"] is None
    same = difference(one, "partitions", stand(one, AtOffset(50)), stand(one, AtOffset(60)))
    assert same.num_rows == 0
    with pytest.raises(NoAnswer, match="health has no difference"):
        difference(one, "health", stand(one, None), stand(one, None))


def test_changes_of_a_window(one: Lake) -> None:
    def kinds(since: int | None, until: int | None, **by: Any) -> list[str]:
        seen = window(
            one,
            None if since is None else AtOffset(since),
            None if until is None else AtTime(until * 1000),
        )
        return [str(kind) for kind in changes(one, seen, Chosen(**by))["kind"].to_pylist()]

    assert kinds(20, 40) == ["topic.deleted", "leader.moved"]
    assert kinds(None, 20) == ["topic.created", "topic.deleted"]
    assert kinds(None, None, kinds=("topic",)) == ["topic.created", "topic.deleted"]
    assert kinds(None, None, kinds=("topic.deleted", "lead")) == ["topic.deleted"]
    assert kinds(None, None, brokers=(2,)) == ["leader.moved"]
    assert kinds(None, None, brokers=(1,)) == ["leader.moved", "broker.fenced"]
    assert kinds(None, None, topics=("a",)) == ["leader.moved"]
    with pytest.raises(NoAnswer, match="nothing is known of that time"):
        kinds(200, None)


def test_health_is_of_any_time_in_the_window(one: Lake) -> None:
    def kinds(since: int | None, until: int | None) -> list[str]:
        seen = window(
            one,
            None if since is None else AtTime(since * 1000),
            None if until is None else AtOffset(until),
        )
        return [str(kind) for kind in health(one, seen)["kind"].to_pylist()]

    assert kinds(None, None) == ["under-replicated", "broker down"]
    assert kinds(None, 40) == ["under-replicated"]
    assert kinds(59, None) == ["under-replicated", "broker down"]
    assert kinds(60, None) == ["broker down"]
    assert kinds(None, 39) == []


def test_a_window_over_a_gap_says_so(gaps: Lake) -> None:
    notes = window(gaps, AtOffset(5), AtOffset(45), ["A"]).notes
    assert len(notes) == 2
    assert "nothing is told of offsets 10 to 19: nobody has that part of the log" in notes[0]
    with pytest.raises(NoAnswer, match="an offset is of one cluster's log"):
        window(gaps, AtOffset(5), None)


def test_a_topic_has_a_timeline(one: Lake) -> None:
    told = rows_of(timeline(one, "a"))
    assert [(row["kind"], row["offset"], row["until"]) for row in told] == [
        ("leader.moved", 40, None),
        ("under-replicated", 40, "1970-01-01T00:01:00.000Z"),
    ]


def test_a_file_that_is_gone_or_damaged_is_named(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a", 0)], "coverage": [covered("A", 0, 9)]})
    lake = Lake.at(str(tmp_path))
    (file,) = tmp_path.glob("topics/**/*.parquet")
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(KraftlineError, match=f"cannot be read: .*{file.name}"):
        lake.dataset("topics")
    file.unlink()
    with pytest.raises(KraftlineError, match=f"cannot be read: .*{file.name}"):
        Lake.at(str(tmp_path)).dataset("topics")


def test_a_storage_that_is_not_known_is_said_in_one_line() -> None:
    with pytest.raises(KraftlineError, match=r"^memory://lake: cannot be read: [^\n\x1b]+$"):
        Lake.at("memory://lake")

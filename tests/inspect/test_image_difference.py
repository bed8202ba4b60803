"""Differences of two images: none to itself, and the mirror the other way round."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from kraftline.inspect.cluster.difference import between, difference, quorum_difference
from kraftline.inspect.cluster.folding import fold_changes
from kraftline.inspect.cluster.story import Filter, story
from kraftline.inspect.history import open_history
from kraftline.inspect.history.moments import AtOffset
from kraftline.metadata.image import EMPTY
from kraftline.metadata.words import Change
from kraftline.schema import metadata as m
from tests.fixture_files import FIXTURES
from tests.fixtures.images.make import directories
from tests.inspect.metadata_logs import ORDERS, OTHER, cluster, make_log, partition, topic
from tests.metadata.replaying import state

by_directory = pytest.mark.parametrize(
    "directory", directories(), ids=lambda path: "-".join(path.parts[-4:-1])
)
# What each is called the other way round; the rest is its own mirror.
_MIRROR = {
    "topic.created": "topic.deleted",
    "partitions.added": "partitions.removed",
    "broker.registered": "broker.unregistered",
    "controller.registered": "controller.unregistered",
    "config.set": "config.removed",
    "feature.set": "feature.removed",
    "feature.raised": "feature.lowered",
    "quota.set": "quota.removed",
    "acl.added": "acl.removed",
    "scram.set": "scram.removed",
    "token.created": "token.removed",
    "isr.grew": "isr.shrank",
    "broker.fenced": "broker.unfenced",
    "broker.shutting-down": "broker.shutdown-over",
    "leader.elected": "leader.lost",
}
_BOTH = {**_MIRROR, **{after: before for before, after in _MIRROR.items()}}
# A restart, a new reassignment and who was elected how say more in one direction.
_ONE_WAY = ("leader.", "reassignment.", "replicas.", "broker.", "controller.", "directory.")


def subjects(changes: list[Change]) -> set[str]:
    return {change.subject for change in changes}


def steady(changes: list[Change]) -> Counter[tuple[str, str]]:
    return Counter(
        (change.kind, change.subject) for change in changes if not change.kind.startswith(_ONE_WAY)
    )


@by_directory
def test_nothing_is_different_from_itself(directory: Path) -> None:
    history = open_history([str(directory)])
    image, again = history.image(), open_history([str(directory)]).image()
    assert difference(image, image) == []
    assert difference(image, again) == []
    assert difference(EMPTY, EMPTY) == []


@by_directory
def test_the_other_way_round_is_the_mirror(directory: Path) -> None:
    history = open_history([str(directory)])
    (leg,) = history.legs
    points = [0, leg.last_offset // 3, leg.last_offset // 2, leg.last_offset]
    images = history.in_order(leg, points)
    for before in images:
        for after in images:
            there, back = difference(before, after), difference(after, before)
            assert subjects(there) == subjects(back)
            mirrored = Counter(
                {(_BOTH.get(kind, kind), who): n for (kind, who), n in steady(there).items()}
            )
            assert mirrored == steady(back)
            assert bool(there) == (state(before) != state(after))


@by_directory
def test_order_of_asking_makes_no_difference(directory: Path) -> None:
    history = open_history([str(directory)])
    (leg,) = history.legs
    first, last = AtOffset(leg.last_offset // 4), AtOffset(leg.last_offset)
    before, after, there = between(history, first, last)
    later, earlier, _ = between(history, last, first)
    assert (before.offset, after.offset) == (earlier.offset, later.offset)
    quorums = history.quorum(leg, first.offset), history.quorum(leg, last.offset)
    images = history.image(first), history.image(last)
    assert [*quorum_difference(*quorums), *difference(*images)] == there


def test_voters_that_came_are_a_difference() -> None:
    """The log names them at offset 628, in a batch that no image has anything of."""
    (directory,) = (path for path in directories() if path.parts[-2:-1] == ("node-4",))
    _, _, changes = between(open_history([str(directory)]), AtOffset(626), AtOffset(628))
    assert [(change.kind, change.subject) for change in changes] == [
        ("feature.set", "kraft.version"),
        *(("voters.added", f"voter {node}") for node in (1, 4, 5)),
    ]
    _, _, back = between(open_history([str(directory)]), AtOffset(628), AtOffset(626))
    assert {change.kind for change in back} == {"feature.removed", "voters.removed"}


def test_voters_that_came_in_a_gap_are_told_of(tmp_path: Path) -> None:
    (directory,) = FIXTURES.glob("upgraded_4_3/data/node-1/__cluster_metadata-0")
    log = Path(shutil.copytree(directory, tmp_path / directory.name))
    (log / f"{596:020d}.log").unlink()
    history = open_history([str(log)])
    told = [one.change for one in story(history, None, None, Filter(kinds=("voters",)))]
    assert {change.text.split(":")[0] for change in told if change.kind == "voters.added"} == {
        f"node {node} is named in the log as a voter" for node in (1, 4, 5)
    }
    assert [change.subject for change in told if change.kind == "voters.added"] == [
        "voter 1",
        "voter 4",
        "voter 5",
    ]


def test_a_topic_made_anew_is_deleted_and_created(tmp_path: Path) -> None:
    anew = [m.RemoveTopicRecord(topic_id=ORDERS), topic("orders", OTHER)]
    log = make_log(tmp_path, *cluster(), [*anew, partition(0, topic_id=OTHER)])
    history = open_history([str(log)])
    _, _, changes = between(history, AtOffset(8), AtOffset(11))
    assert [change.text for change in changes] == [
        "topic orders deleted (it had 4 partitions with 3 replicas)",
        "topic orders created: 1 partition with 3 replicas",
    ]


def test_what_came_and_went_is_no_difference(tmp_path: Path) -> None:
    fenced = m.FenceBrokerRecord(id=1, epoch=1)
    back = m.UnfenceBrokerRecord(id=1, epoch=1)
    log = make_log(tmp_path, *cluster(), [fenced], [back])
    _, _, changes = between(open_history([str(log)]), AtOffset(8), AtOffset(10))
    assert changes == []


def test_causes_that_two_images_show(tmp_path: Path) -> None:
    move = m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2, isr=(2, 3))
    log = make_log(tmp_path, *cluster(), [move], [m.FenceBrokerRecord(id=1, epoch=1)])
    _, _, changes = between(open_history([str(log)]), AtOffset(8), AtOffset(10))
    assert [change.text for change in changes] == [
        "broker 1 was fenced: no heartbeats came from it",
        "leader of orders-0 moved 1 -> 2 because broker 1 is fenced",
        "ISR of orders-0 shrank: 1 left because broker 1 is fenced; in sync: 2, 3",
    ]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (
            135,
            [
                "broker 2 was fenced: its controlled shutdown is done",
                "broker 2 began a controlled shutdown",
            ],
        ),
        (146, ["broker 2 restarted with a new incarnation"]),
    ],
)
def test_a_broker_that_stopped_cleanly_in_between(last: int, expected: list[str]) -> None:
    """A controlled shutdown began at offset 120 and was done at 132; it was back at 138."""
    (path,) = FIXTURES.glob("eventful_day/data/node-1/__cluster_metadata-0")
    _, _, changes = between(open_history([str(path)]), AtOffset(119), AtOffset(last))
    assert [c.text for c in changes if c.subject == "broker 2" and not c.minor] == expected


def test_many_alike_are_folded() -> None:
    (directory,) = (path for path in directories() if path.parts[-2:-1] == ("node-4",))
    history = open_history([str(directory)])
    _, _, changes = between(history, AtOffset(100), AtOffset(800))
    folded = fold_changes(changes)
    assert len(folded) < len(changes)
    assert sum(one.count for one in folded) == len(changes)

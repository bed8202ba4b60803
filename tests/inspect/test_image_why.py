"""The story of one partition up to a moment."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kraftline.inspect.cluster.why import Story, split_name, why
from kraftline.inspect.history import Unanswerable, open_history
from kraftline.inspect.history.moments import AtOffset
from kraftline.schema import metadata as m
from kraftline.schema.types import Message
from tests.fixture_files import FIXTURES
from tests.inspect.metadata_logs import (
    ORDERS,
    OTHER,
    VERSION,
    cluster,
    make_log,
    make_segment,
    make_snapshot,
    partition,
    register,
    topic,
    uuid,
)


def fence(broker: int) -> Message:
    return m.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=1)


def move(number: int, leader: int, isr: tuple[int, ...]) -> Message:
    return m.PartitionChangeRecord(partition_id=number, topic_id=ORDERS, leader=leader, isr=isr)


def ask(path: Path, name: str, at: int | None = None) -> Story:
    history = open_history([str(path)])
    return why(history, *split_name(name), None if at is None else AtOffset(at))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return make_log(
        tmp_path,
        *cluster(),
        [topic("other", OTHER), partition(0, (1,), topic_id=OTHER)],
        [move(3, 2, (2, 3)), move(1, 2, (2, 3)), fence(1)],
        [register(4, epoch=4)],
        [fence(2), move(3, 3, (3,))],
    )


def test_its_own_changes_and_its_brokers(log: Path) -> None:
    story = ask(log, "orders-3")
    assert [one.change.text for one in story.events] == [
        "topic orders created: 4 partitions with 3 replicas",
        "broker 1 was fenced: no heartbeats came from it",
        "leader of orders-3 moved 1 -> 2 because broker 1 was fenced",
        "ISR of orders-3 shrank: 1 left because broker 1 was fenced; in sync: 2, 3",
        "broker 2 was fenced: no heartbeats came from it",
        "leader of orders-3 moved 2 -> 3 because broker 2 was fenced",
        "ISR of orders-3 shrank: 2 left because broker 2 was fenced; in sync: 3",
    ]
    assert story.sentence == (
        "orders-3 is led by 3 in leader epoch 2 (preferred would be 1); in sync: 3 of 1, 2, 3. "
        "Broker 1 is fenced since 2026-03-01 03:00:06.000Z (offset 13). "
        "Broker 2 is fenced since 2026-03-01 03:00:08.000Z (offset 15)."
    )


def test_up_to_a_moment(log: Path) -> None:
    story = ask(log, "orders-3", 10)
    assert len(story.events) == 1
    assert story.sentence == (
        "orders-3 is led by 1 in leader epoch 0, and all its replicas are in sync: 1, 2, 3."
    )


def test_without_a_leader(tmp_path: Path) -> None:
    lost = m.PartitionChangeRecord(
        partition_id=0, topic_id=ORDERS, leader=-1, isr=(), eligible_leader_replicas=(1,)
    )
    story = ask(make_log(tmp_path, *cluster(), [lost, fence(1)]), "orders-0")
    assert story.sentence.startswith(
        "orders-0 has no leader: nobody can write to it or read from it; in sync: none of 1, 2, 3. "
        "Broker 1 is fenced since 2026-03-01 03:00:05.000Z (offset 10). "
        "Broker 2 is in service and has not caught up."
    )
    assert "Eligible to lead though out of sync: 1." in story.sentence
    assert story.troubles[0] == "offline"


def test_below_min_isr_and_moving(tmp_path: Path) -> None:
    config = m.ConfigRecord(
        resource_type=2, resource_name="orders", name="min.insync.replicas", value="2"
    )
    moving = m.PartitionChangeRecord(
        partition_id=0, topic_id=ORDERS, isr=(1,), removing_replicas=(3,)
    )
    story = ask(make_log(tmp_path, *cluster(), [config], [moving]), "orders-0")
    assert "It is being moved to brokers 1, 2." in story.sentence
    assert "min.insync.replicas is 2: producers that want acks from all are refused." in (
        story.sentence
    )
    assert "min.insync.replicas of topic orders set to 2" in story.events[1].change.text


def test_fewer_replicas_than_min_isr_refuse_nobody(tmp_path: Path) -> None:
    """Kafka 3.9.2 and 4.3.1 take writes with acks=all where all of too few replicas are in sync."""
    config = m.ConfigRecord(
        resource_type=2, resource_name="orders", name="min.insync.replicas", value="4"
    )
    log = make_log(tmp_path, *cluster(), [config])
    assert "refused" not in ask(log, "orders-0").sentence
    shrank = m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1, 2))
    log = make_log(tmp_path / "shrunk", *cluster(), [config], [shrank])
    assert "min.insync.replicas is 4: producers" in ask(log, "orders-0").sentence


def test_a_topic_that_was_deleted_has_a_story(tmp_path: Path) -> None:
    log = make_log(tmp_path, *cluster(), [m.RemoveTopicRecord(topic_id=ORDERS)])
    story = ask(log, "orders-1")
    assert story.sentence == "orders-1 does not exist at that moment."
    assert story.events[-1].change.kind == "topic.deleted"


def test_brokers_are_followed_only_while_the_topic_is_there(tmp_path: Path) -> None:
    log = make_log(
        tmp_path,
        *cluster(),
        [m.RemoveTopicRecord(topic_id=ORDERS)],
        [fence(1)],
        [topic("orders", OTHER), partition(1, (2,), topic_id=OTHER)],
        [fence(3)],
        [fence(2)],
    )
    kinds = ["topic.created", "topic.deleted", "topic.created", "broker.fenced"]
    events = ask(log, "orders-1").events
    assert [one.change.kind for one in events] == kinds
    assert events[-1].change.subject == "broker 2"


def test_brokers_are_followed_only_while_they_are_replicas(tmp_path: Path) -> None:
    change = partial(m.PartitionChangeRecord, partition_id=0, topic_id=ORDERS)
    back = partial(m.BrokerRegistrationChangeRecord, fenced=-1)
    one, two, three, four = (uuid(5000 + broker) for broker in (1, 2, 3, 4))
    moving = change(
        replicas=(1, 2, 3, 4),
        directories=(one, two, three, four),
        adding_replicas=(4,),
        removing_replicas=(3,),
    )
    moved = change(
        replicas=(1, 2, 4),
        directories=(one, two, four),
        isr=(1, 2, 4),
        adding_replicas=(),
        removing_replicas=(),
    )
    log = make_log(
        tmp_path,
        *cluster(),
        [register(4, epoch=4)],
        [moving],
        [fence(3)],
        [moved],
        [back(broker_id=3, broker_epoch=3)],
        [back(broker_id=4, broker_epoch=4)],
    )
    events = ask(log, "orders-0").events
    assert [(one.change.kind, one.change.subject) for one in events] == [
        ("topic.created", "topic orders"),
        ("reassignment.started", "orders-0"),
        ("broker.fenced", "broker 3"),
        ("isr.changed", "orders-0"),
        ("reassignment.completed", "orders-0"),
        ("broker.unfenced", "broker 4"),
    ]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (228, "Broker 3 is in service, but its directory there is offline."),
        (298, "(offset 240), and its directory there is offline."),
    ],
)
def test_a_replica_on_a_lost_directory_is_not_said_to_catch_up(at: int, said: str) -> None:
    """Broker 3 lost a directory at offset 224, and was shut down from 240 on."""
    (path,) = FIXTURES.glob("metadata_4_3/data/node-1/__cluster_metadata-0")
    assert said in ask(path, "single-0", at).sentence


def test_defaults_of_all_topics_are_part_of_the_story(tmp_path: Path) -> None:
    config = partial(m.ConfigRecord, resource_type=4, resource_name="")
    log = make_log(
        tmp_path,
        *cluster(),
        [config(name="min.insync.replicas", value="3")],
        [config(name="background.threads", value="3")],
    )
    *_, last = ask(log, "orders-0").events
    assert last.change.text == "min.insync.replicas of all brokers set to 3"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("order-1", "there is no topic order, .* did you mean orders"),
        ("orders-4", "orders has partitions 0 to 3"),
        ("nothing-0", "there is no topic nothing"),
    ],
)
def test_what_never_was(log: Path, name: str, expected: str) -> None:
    with pytest.raises(Unanswerable, match=expected):
        ask(log, name)


@pytest.mark.parametrize("name", ["orders", "-3", "orders-x", ""])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match="is not a partition"):
        split_name(name)


def test_names_with_dashes() -> None:
    assert split_name("a-b-12") == ("a-b", 12)


def test_from_a_snapshot_and_across_a_gap(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    batches = cluster()
    make_segment(folder, batches)
    base: list[Message] = [VERSION, *(register(n, epoch=n, fenced=False) for n in (1, 2, 3))]
    make_snapshot(folder, 20, [*base, topic(), partition(0, leader=2), partition(1)])
    make_segment(folder, [[move(0, 3, (3,)), fence(2)]], start=20)
    story = ask(folder, "orders-0")
    assert [one.change.kind for one in story.events] == [
        "topic.created",
        "log.gap",
        "partitions.removed",
        "leader.moved",
        "broker.fenced",
        "leader.moved",
        "isr.shrank",
    ]
    (folder / f"{0:020d}.log").unlink()
    assert [one.change.kind for one in ask(folder, "orders-0").events] == [
        "broker.fenced",
        "leader.moved",
        "isr.shrank",
    ]

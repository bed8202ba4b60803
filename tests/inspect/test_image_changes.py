"""The story of a log: causes, folding, transactions, gaps; on hand-made and on real logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.inspect.cluster.folding import fold
from kraftline.inspect.cluster.state import State
from kraftline.inspect.cluster.story import Filter, story, window
from kraftline.inspect.cluster.telling import Teller, Told
from kraftline.inspect.history import Unanswerable, open_history
from kraftline.inspect.history.moments import AtOffset, AtTime
from kraftline.schema import metadata as m
from kraftline.schema.types import Message
from tests.fixtures.images.make import directories
from tests.inspect.metadata_logs import (
    ORDERS,
    OTHER,
    START,
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
from tests.metadata.replaying import state as state_of

ALL = Filter()
EVERYTHING = Filter(minor=True)


def told(path: Path, since: int | None = None, wanted: Filter = ALL) -> list[Told]:
    history = open_history([str(path)])
    return list(story(history, None if since is None else AtOffset(since), None, wanted))


def texts(path: Path, since: int | None = None, wanted: Filter = ALL) -> list[str]:
    return [f"{one.offset} {one.change.text}" for one in told(path, since, wanted)]


def fence(broker: int) -> Message:
    return m.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=1)


def move(number: int, leader: int, isr: tuple[int, ...]) -> Message:
    return m.PartitionChangeRecord(partition_id=number, topic_id=ORDERS, leader=leader, isr=isr)


def test_a_leader_moves_because_its_broker_was_fenced_in_the_same_batch(tmp_path: Path) -> None:
    # The controller writes the partitions first.
    log = make_log(tmp_path, *cluster(), [move(3, 2, (2, 3)), fence(1)])
    assert texts(log, since=9) == [
        "9 leader of orders-3 moved 1 -> 2 because broker 1 was fenced",
        "9 ISR of orders-3 shrank: 1 left because broker 1 was fenced; in sync: 2, 3",
        "10 broker 1 was fenced: no heartbeats came from it",
    ]


def test_a_leader_moves_because_of_what_was_before(tmp_path: Path) -> None:
    log = make_log(tmp_path, *cluster(), [fence(1)], [move(3, 2, (2, 3))])
    assert texts(log, since=10)[0] == (
        "10 leader of orders-3 moved 1 -> 2 because broker 1 is fenced"
    )


def test_a_quick_restart_moves_leaders(tmp_path: Path) -> None:
    log = make_log(tmp_path, *cluster(), [move(0, 3, (3,)), register(1, epoch=9, incarnation=77)])
    assert texts(log, since=9) == [
        "9 leader of orders-0 moved 1 -> 3 because broker 1 restarted without a clean stop",
        "9 ISR of orders-0 shrank: 1, 2 left because broker 1 restarted without a clean stop; in "
        "sync: 3",
        "10 broker 1 restarted without a clean stop, fenced until it has caught up",
    ]


def test_an_unclean_restart_takes_eligibility_away_in_many_partitions(tmp_path: Path) -> None:
    def eligible(number: int, *brokers: int) -> Message:
        return m.PartitionChangeRecord(
            partition_id=number, topic_id=ORDERS, eligible_leader_replicas=brokers
        )

    # As Kafka 4.3.1 writes it when a broker comes back that was killed.
    log = make_log(
        tmp_path,
        *cluster(),
        [eligible(n, 1) for n in range(4)],
        [*(eligible(n) for n in range(4)), register(1, epoch=13, incarnation=77)],
    )
    assert [one.change.text for one in fold(told(log, since=9))] == [
        "1 is out of sync but eligible to lead 4 partitions: orders-0, orders-1, orders-2, "
        "orders-3",
        "1 is no longer eligible to lead 4 partitions: orders-0, orders-1, orders-2, orders-3",
        "broker 1 restarted without a clean stop, fenced until it has caught up",
    ]


def test_a_broker_that_is_gone(tmp_path: Path) -> None:
    gone = m.UnregisterBrokerRecord(broker_id=1, broker_epoch=1)
    log = make_log(tmp_path, *cluster(), [gone, move(0, 2, (2, 3))])
    assert texts(log, since=9)[1].endswith("because broker 1 was unregistered")


def test_a_lost_directory_is_a_cause(tmp_path: Path) -> None:
    change = m.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=1, log_dirs=(uuid(6001),), fenced=0
    )
    log = make_log(tmp_path, *cluster(), [move(0, 2, (2, 3)), change], [move(1, 2, (2, 3))])
    said = texts(log, since=9)
    assert "9 leader of orders-0 moved 1 -> 2 because broker 1 lost a directory" in said
    assert "11 leader of orders-1 moved 1 -> 2 because its directory on broker 1 is offline" in said


def test_the_leaders_of_one_fencing_are_one_line(tmp_path: Path) -> None:
    batches = cluster(partitions=300)
    moves = [move(n, 2 if n % 3 else 3, (2, 3)) for n in range(300)]
    log = make_log(tmp_path, *batches, [*moves, fence(1)])
    folded = list(fold(told(log, since=305)))
    assert [(one.count, one.change.text) for one in folded] == [
        (300, "300 leaders moved away from 1 because broker 1 was fenced: 200 to 2, 100 to 3"),
        (
            300,
            "1 left the ISR of 300 partitions because broker 1 was fenced: orders-0, orders-1, "
            "orders-2 and 297 more",
        ),
        (1, "broker 1 was fenced: no heartbeats came from it"),
    ]
    assert len(folded[0].subjects) == 300
    assert len(told(log, since=305)) == 601


def test_a_few_are_told_one_by_one_in_order(tmp_path: Path) -> None:
    log = make_log(tmp_path, *cluster(), [*(move(n, 2, (2, 3)) for n in range(3)), fence(1)])
    offsets = [one.offset for one in fold(told(log))]
    assert offsets == sorted(offsets)
    assert not any(one.count > 1 for one in fold(told(log)))


def test_a_topic_with_its_partitions_and_configs_is_one_change(tmp_path: Path) -> None:
    config = m.ConfigRecord(
        resource_type=2, resource_name="orders", name="retention.ms", value="86400000"
    )
    # 4.x writes configs behind the topic, 3.3 before it.
    for number, batch in enumerate(
        ([topic(), config, partition(0), partition(1)], [config, topic(), partition(0, (2,))])
    ):
        log = make_log(tmp_path / str(number), [VERSION], batch)
        (change,) = told(log, since=1)
        assert change.change.text.startswith("topic orders created: ")
        assert change.change.text.endswith("; retention.ms 1d")


def test_partitions_added_later(tmp_path: Path) -> None:
    log = make_log(tmp_path, *cluster(), [partition(4), partition(5)])
    assert texts(log, since=9) == ["9 topic orders got 2 partitions more (4 -> 6)"]


def test_a_topic_made_and_removed_in_one_unit_leaves_only_its_end(tmp_path: Path) -> None:
    log = make_log(
        tmp_path, [VERSION], [topic(), partition(0), m.RemoveTopicRecord(topic_id=ORDERS)]
    )
    assert texts(log, since=1) == ["3 topic orders deleted (it had 1 partition with 3 replicas)"]


def test_a_transaction_is_told_at_its_end(tmp_path: Path) -> None:
    log = make_log(
        tmp_path,
        [VERSION],
        [m.BeginTransactionRecord(name="t"), topic()],
        [partition(0)],
        [m.EndTransactionRecord(), topic("later", OTHER)],
    )
    assert texts(log, since=1) == [
        "4 topic orders created: 1 partition with 3 replicas",
        "5 topic later created: no partitions",
    ]


def test_transactions_without_effect_are_told_as_such(tmp_path: Path) -> None:
    log = make_log(
        tmp_path,
        [VERSION],
        [m.BeginTransactionRecord(name="a"), topic(), m.AbortTransactionRecord(reason="no")],
        [m.BeginTransactionRecord(name="b"), topic(), partition(0)],
    )
    assert texts(log, since=1) == [
        "3 metadata transaction 'a' with 1 record was aborted: no",
        "6 metadata transaction 'b' with 2 records is not ended yet: none of it counts",
    ]


@pytest.mark.parametrize("since", range(1, 6))
def test_a_window_that_begins_inside_a_transaction(tmp_path: Path, since: int) -> None:
    log = make_log(
        tmp_path,
        [VERSION],
        [topic(), partition(0), m.BeginTransactionRecord(name="t"), move(0, 2, (1, 2, 3))],
        [move(0, 3, (1, 2, 3))],
        [m.EndTransactionRecord()],
    )
    history = open_history([str(log)])
    last = [one.change.text for one in story(history, AtOffset(since), None, ALL)][-2:]
    assert last == [
        "leader of orders-0 moved 1 -> 2 because broker 1 is not registered",
        "leader of orders-0 moved 2 -> 3 because broker 2 is not registered",
    ]
    assert not history.trouble


def test_a_gap_is_told_with_what_changed_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    make_segment(folder, cluster())
    make_segment(folder, [[fence(2)]], start=20, time=START + 60_000)
    base = [VERSION, register(2, epoch=2, fenced=False), register(3, epoch=3, fenced=False)]
    make_snapshot(folder, 20, [*base, topic("new", OTHER)], time=START + 50_000)
    assert texts(folder, since=9) == [
        "19 offsets 9 to 19 are missing from the log; until here this has changed, in an unknown "
        "order:",
        "19 broker 1 was unregistered",
        "19 topic new created: no partitions",
        "19 topic orders deleted (it had 4 partitions with 3 replicas)",
        "20 broker 2 was fenced: no heartbeats came from it",
    ]


def test_windows(tmp_path: Path) -> None:
    history = open_history([str(make_log(tmp_path, *cluster()))])

    def offsets(since: AtOffset | AtTime | None, until: AtOffset | AtTime | None) -> list[int]:
        window(history, since, until)
        return [one.offset for one in story(history, since, until, ALL)]

    assert offsets(None, None) == [0, 1, 2, 3, 4]
    assert offsets(AtOffset(2), AtOffset(3)) == [2, 3]
    assert offsets(AtTime(START + 1000), AtTime(START + 2500)) == [1, 2]
    assert offsets(AtTime(0), AtTime(2 * START)) == [0, 1, 2, 3, 4]
    assert history.trouble[-1].reason == (
        "the log begins at offset 0, 2026-03-01 03:00:00.000Z: there was nothing before"
    )
    for since, until in ((AtTime(2 * START), None), (None, AtTime(START - 1))):
        with pytest.raises(Unanswerable, match="offsets 0 to 8"):
            offsets(since, until)


def test_a_window_that_begins_before_the_oldest_snapshot(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    make_snapshot(folder, 20, [VERSION])
    make_segment(folder, [[topic()]], start=20)
    history = open_history([str(folder)])
    window(history, AtOffset(3), None)
    assert history.trouble[-1].reason == (
        "nothing is known before offset 19, 2026-03-01 03:00:00.000Z: older files are gone"
    )


def test_filters(tmp_path: Path) -> None:
    log = make_log(
        tmp_path,
        *cluster(),
        [topic("other", OTHER), partition(0, topic_id=OTHER)],
        [move(3, 2, (2, 3)), fence(1)],
    )
    assert len(texts(log, 9)) == 4
    assert texts(log, 9, Filter(topics=("oth*",))) == [
        "9 topic other created: 1 partition with 3 replicas"
    ]
    assert len(texts(log, 9, Filter(topics=("orders",)))) == 2
    assert len(texts(log, 9, Filter(brokers=(1,)))) == 3
    assert texts(log, 9, Filter(kinds=("leader",)))[0].startswith("11 leader of orders-3")
    assert len(texts(log, 9, Filter(kinds=("broker.fenced", "topic")))) == 2
    assert texts(log, 9, Filter(kinds=("lead",))) == []


@pytest.mark.parametrize("directory", directories(), ids=lambda path: "-".join(path.parts[-4:-1]))
def test_telling_replays_to_the_same_state(directory: Path) -> None:
    history = open_history([str(directory)])
    (leg,) = history.legs
    state = State(history.base_image(leg.base))
    teller = Teller(state, history.faults(leg))
    for effect, time in history.effects(leg, 0, leg.last_offset):
        teller.tell(effect, time)
    image = state.delta.apply(history.provenance(leg, leg.last_offset))
    assert state_of(image) == state_of(history.image())


def test_what_real_clusters_went_through_has_every_word() -> None:
    kinds = {
        one.change.kind for directory in directories() for one in told(directory, wanted=EVERYTHING)
    }
    assert kinds >= {
        "acl.added",
        "acl.removed",
        "broker.directory.cordoned",
        "broker.directory.offline",
        "broker.directory.uncordoned",
        "broker.fenced",
        "broker.registered",
        "broker.restarted",
        "broker.shutting-down",
        "broker.unfenced",
        "broker.unregistered",
        "config.removed",
        "config.set",
        "controller.elected",
        "controller.registered",
        "controller.restarted",
        "directory.assigned",
        "elr.changed",
        "elr.cleared",
        "feature.raised",
        "feature.removed",
        "feature.set",
        "isr.changed",
        "isr.grew",
        "isr.shrank",
        "leader.elected",
        "leader.epoch",
        "leader.lost",
        "leader.moved",
        "leader.recovered",
        "leader.unclean",
        "partitions.added",
        "producer-ids.allocated",
        "quota.removed",
        "quota.set",
        "reassignment.cancelled",
        "reassignment.completed",
        "reassignment.started",
        "scram.changed",
        "scram.removed",
        "scram.set",
        "token.created",
        "token.removed",
        "token.renewed",
        "topic.created",
        "topic.deleted",
        "transaction.aborted",
        "voters.set",
    }


@pytest.mark.parametrize("directory", directories(), ids=lambda path: "-".join(path.parts[-4:-1]))
def test_every_change_of_a_real_log_reads_as_a_sentence(directory: Path) -> None:
    for one in told(directory, wanted=EVERYTHING):
        assert one.change.text
        assert one.change.text == one.change.text.strip()
        assert "None" not in one.change.text
        assert one.change.subject
        assert one.time > 0

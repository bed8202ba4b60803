"""Topics in an image: made, changed, removed, made again; what is shared; what a broker sees."""

from __future__ import annotations

import pytest

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.local_changes import TopicIdPartition, TopicPartition
from kraftline.metadata.image.topics import TopicsDelta
from kraftline.schema import metadata as m
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.metadata.replaying import replay

ORDERS, OTHER = Uuid(b"\1" * 16), Uuid(b"\2" * 16)
DIRS = (Uuid(b"a" * 16), Uuid(b"b" * 16))


def topic(name: str, topic_id: Uuid, partitions: int = 2) -> list[Message]:
    records: list[Message] = [m.TopicRecord(name=name, topic_id=topic_id)]
    return records + [partition(topic_id, number) for number in range(partitions)]


def partition(topic_id: Uuid, number: int, elr: tuple[int, ...] = ()) -> m.PartitionRecord:
    return m.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=(1, 2),
        isr=(1, 2),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=DIRS,
        eligible_leader_replicas=elr or None,
    )


@pytest.fixture
def image() -> MetadataImage:
    return replay([*topic("orders", ORDERS), *topic("other", OTHER)])


def test_topic_record_starts_from_no_partitions(image: MetadataImage) -> None:
    after = replay([m.TopicRecord(name="orders", topic_id=ORDERS), partition(ORDERS, 0)], image)
    assert len(after.topics.by_id[ORDERS].partitions) == 1


def test_untouched_topics_and_partitions_are_shared(image: MetadataImage) -> None:
    change = m.PartitionChangeRecord(partition_id=1, topic_id=ORDERS, leader=2)
    after = replay([change], image)
    assert after.topics is not image.topics
    assert after.topics.ids is image.topics.ids
    assert after.topics.by_id[OTHER] is image.topics.by_id[OTHER]
    assert after.topics.by_id[ORDERS].partitions[0] is image.topics.by_id[ORDERS].partitions[0]
    for part in ("features", "cluster", "configs", "client_quotas", "producer_ids", "acls"):
        assert getattr(after, part) is getattr(image, part)


def test_delta_that_changes_nothing_gives_the_same_image(image: MetadataImage) -> None:
    again: list[Message] = [m.NoOpRecord(), partition(ORDERS, 0), *topic("other", OTHER)]
    assert replay(again, image) is image
    made_and_removed = [
        *topic("new", Uuid(b"3" * 16)),
        m.RemoveTopicRecord(topic_id=Uuid(b"3" * 16)),
    ]
    assert replay(made_and_removed, image) is image
    removed_and_made = [m.RemoveTopicRecord(topic_id=OTHER), *topic("other", OTHER)]
    assert replay(removed_and_made, image) is image


def test_name_deleted_and_made_again_in_one_delta_is_the_new_topic(image: MetadataImage) -> None:
    new = Uuid(b"\3" * 16)
    delta = MetadataDelta(image)
    for record in (m.RemoveTopicRecord(topic_id=ORDERS), *topic("orders", new, 1)):
        delta.replay(record)
    after = delta.apply(image.provenance)
    found = after.topics.named("orders")
    assert found is not None
    assert (found.id, len(found.partitions)) == (new, 1)
    assert ORDERS not in after.topics.by_id
    assert delta.topics is not None
    assert set(delta.topics.deleted) == {ORDERS}
    assert delta.topics.created == {"orders": new}


def test_topic_made_and_removed_in_one_delta_leaves_no_trace(image: MetadataImage) -> None:
    delta = TopicsDelta(image.topics)
    new = Uuid(b"\3" * 16)
    delta.replay_topic(m.TopicRecord(name="new", topic_id=new))
    assert delta.replay_remove(m.RemoveTopicRecord(topic_id=new)) == "new"
    assert (delta.changed, delta.deleted, delta.created) == ({}, {}, {})
    assert delta.apply() is image.topics


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (m.PartitionRecord(topic_id=Uuid(b"9" * 16)), "Unable to find topic with id"),
        (m.PartitionChangeRecord(topic_id=Uuid(b"9" * 16)), "Unable to find topic with id"),
        (
            m.PartitionChangeRecord(topic_id=ORDERS, partition_id=7),
            f"Unable to find partition {ORDERS}:7",
        ),
        (
            m.RemoveTopicRecord(topic_id=Uuid(b"9" * 16)),
            r"Unable to delete topic with id .*: no such topic found\.",
        ),
        (m.ClearElrRecord(topic_name="nix"), "Unable to clear elr for topic with name nix"),
    ],
)
def test_record_about_what_is_not_there_is_refused_and_changes_nothing(
    image: MetadataImage, record: Message, reason: str
) -> None:
    delta = MetadataDelta(image)
    with pytest.raises(ReplayError, match=reason) as error:
        delta.replay(record)
    assert error.value.record is record
    assert delta.topics is not None
    assert (delta.topics.changed, delta.topics.deleted) == ({}, {})
    assert delta.apply(image.provenance) is image


def test_partition_of_a_topic_removed_in_this_delta_is_refused(image: MetadataImage) -> None:
    delta = MetadataDelta(image)
    delta.replay(m.RemoveTopicRecord(topic_id=ORDERS))
    with pytest.raises(ReplayError, match="Unable to find topic"):
        delta.replay(partition(ORDERS, 5))


def test_partitions_with_holes_are_kept_by_their_ids() -> None:
    records = [partition(ORDERS, number) for number in (7, 2, 2_000_000_000)]
    image = replay([m.TopicRecord(name="orders", topic_id=ORDERS), *records])
    found = image.topics.by_id[ORDERS]
    assert [number for number, _ in found.items()] == [2, 7, 2_000_000_000]
    assert found.partition(7) is not None
    assert found.partition(0) is None
    assert found.partition(-1) is None
    more = [partition(ORDERS, number) for number in range(7)]
    assert replay(more, image).topics.by_id[ORDERS].partition(3) is not None
    dense = replay([*topic("orders", ORDERS, 0), *(partition(ORDERS, n) for n in (1, 0, 2))])
    assert dense.topics.by_id[ORDERS].sparse is None


def test_clear_elr_empties_both_lists_and_raises_the_epoch() -> None:
    image = replay(
        [
            m.TopicRecord(name="orders", topic_id=ORDERS),
            partition(ORDERS, 0, elr=(2,)),
            partition(ORDERS, 1),
            *topic("other", OTHER),
        ]
    )
    for name in ("", "orders"):
        after = replay([m.ClearElrRecord(topic_name=name)], image)
        cleared, untouched = after.topics.by_id[ORDERS].partitions
        assert (cleared.elr, cleared.last_known_elr, cleared.partition_epoch) == ((), (), 1)
        assert untouched is image.topics.by_id[ORDERS].partitions[1]
        assert after.topics.by_id[OTHER] is image.topics.by_id[OTHER]


def test_clear_elr_sees_what_the_same_delta_did() -> None:
    records = [
        m.TopicRecord(name="orders", topic_id=ORDERS),
        partition(ORDERS, 0, elr=(2,)),
        m.ClearElrRecord(topic_name="orders"),
        m.ClearElrRecord(topic_name=""),
    ]
    (found,) = replay(records).topics.by_id[ORDERS].partitions
    assert (found.elr, found.partition_epoch) == ((), 1)


def test_elections_are_counted_by_kind() -> None:
    delta = TopicsDelta(EMPTY.topics)
    delta.replay_topic(m.TopicRecord(name="orders", topic_id=ORDERS))
    delta.replay_partition(partition(ORDERS, 0, elr=(2,)))
    change = m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2)
    delta.replay_change(change)
    unclean = m.PartitionChangeRecord(
        partition_id=0, topic_id=ORDERS, leader=1, leader_recovery_state=1
    )
    delta.replay_change(unclean)
    elections = delta.changed[ORDERS].elections
    assert elections is not None
    assert (elections.unclean, elections.eligible) == ({0: 1}, {0: 1})


def test_snapshot_drops_the_topics_it_does_not_name(image: MetadataImage) -> None:
    delta = MetadataDelta(image)
    for record in topic("other", OTHER):
        delta.replay(record)
    delta.finish_snapshot()
    after = delta.apply(image.provenance)
    assert set(after.topics.ids) == {"other"}
    assert after.topics.by_id[OTHER] is image.topics.by_id[OTHER]


def test_local_changes_sort_partitions_by_what_the_broker_has_to_do(image: MetadataImage) -> None:
    delta = TopicsDelta(image.topics)
    changes = [
        m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2),
        m.PartitionChangeRecord(partition_id=1, topic_id=ORDERS, isr=(1,)),
        m.PartitionChangeRecord(
            partition_id=0, topic_id=OTHER, replicas=(1, 3), directories=DIRS[::-1]
        ),
    ]
    for record in changes:
        delta.replay_change(record)
    one, two, three = (delta.local_changes(broker) for broker in (1, 2, 3))
    orders = [TopicPartition("orders", number) for number in range(2)]
    other = TopicPartition("other", 0)
    assert set(one.leaders) == {orders[1], other}
    assert set(one.elected_leaders) == set()
    assert set(one.followers) == {orders[0]}
    assert one.directory_ids == {TopicIdPartition(OTHER, "other", 0): DIRS[1]}
    assert set(two.elected_leaders) == set(two.leaders) == {orders[0]}
    assert set(two.followers) == {orders[1]}
    assert two.deletes == {other}
    assert set(three.followers) == {other}
    assert three.topic_ids == {"other": OTHER}
    # A replica that moved to a broker is not among its directory ids, as in Kafka.
    assert three.directory_ids == {}


def test_removed_topic_is_deleted_where_it_had_replicas(image: MetadataImage) -> None:
    delta = TopicsDelta(image.topics)
    delta.replay_remove(m.RemoveTopicRecord(topic_id=ORDERS))
    assert delta.local_changes(2).deletes == {TopicPartition("orders", n) for n in range(2)}
    assert delta.local_changes(3).deletes == set()

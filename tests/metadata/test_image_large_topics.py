"""Topics of very many partitions: read like any other, and a change leaves most of them shared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.partitions import ROW, ManyPartitions
from kraftline.metadata.image.topic import TopicImage
from kraftline.schema import metadata as m
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.metadata.replaying import replay

TOPIC = Uuid(b"\1" * 16)
EDGES = (1, ROW - 1, ROW, ROW + 1, 2 * ROW, 2 * ROW + 1, 3 * ROW - 1)


def partition(number: int, leader: int = 1) -> m.PartitionRecord:
    return m.PartitionRecord(
        partition_id=number, topic_id=TOPIC, replicas=(1, 2, 3), isr=(1, 2, 3), leader=leader
    )


def large(count: int) -> MetadataImage:
    records: list[Message] = [m.TopicRecord(name="large", topic_id=TOPIC)]
    return replay([*records, *map(partition, range(count))])


def the_topic(image: MetadataImage) -> TopicImage:
    return image.topics.by_id[TOPIC]


@pytest.mark.parametrize("count", EDGES)
def test_partitions_read_the_same_however_many_there_are(count: int) -> None:
    topic = the_topic(large(count))
    assert isinstance(topic.partitions, tuple) == (count <= ROW)
    assert len(topic.partitions) == count
    assert [number for number, _ in topic.items()] == list(range(count))
    assert [topic.partition(number) for number in range(count)] == list(topic.partitions)
    assert topic.partitions[-1] is topic.partition(count - 1)
    assert topic.partition(count) is None
    assert topic.partition(-1) is None
    with pytest.raises(IndexError):
        topic.partitions[count]


def test_change_in_a_large_topic_makes_one_row_anew() -> None:
    image = large(10 * ROW)
    change = m.PartitionChangeRecord(partition_id=3 * ROW + 5, topic_id=TOPIC, leader=2)
    before, after = (the_topic(each).partitions for each in (image, replay([change], image)))
    assert isinstance(before, ManyPartitions)
    assert isinstance(after, ManyPartitions)
    same = [mine is theirs for mine, theirs in zip(before.rows, after.rows, strict=True)]
    assert same == [number != 3 for number in range(10)]
    leaders = {number for number, each in enumerate(after) if each.leader == 2}
    assert leaders == {3 * ROW + 5}


@pytest.mark.parametrize("count", EDGES)
def test_writing_a_partition_as_it_is_gives_the_same_image(count: int) -> None:
    image = large(count)
    assert replay([partition(count - 1)], image) is image
    assert replay(map(partition, reversed(range(count))), image) is image


@given(
    st.sampled_from(EDGES),
    st.lists(st.lists(st.integers(0, 3 * ROW + 2), max_size=4), max_size=4),
    st.integers(0, ROW + 2),
)
def test_every_way_to_the_same_partitions_gives_equal_images(
    count: int, deltas: list[list[int]], more: int
) -> None:
    """In deltas of a few records, some of which leave holes, and all of it in one."""
    image, leaders = large(count), dict.fromkeys(range(count), 1)
    for leader, numbers in enumerate([*deltas, list(range(count, count + more))], 2):
        image = replay([partition(number, leader) for number in numbers], image)
        leaders |= dict.fromkeys(numbers, leader)
    records = [partition(number, leaders[number]) for number in sorted(leaders)]
    assert image == replay([m.TopicRecord(name="large", topic_id=TOPIC), *records])
    assert {number: each.leader for number, each in the_topic(image).items()} == leaders

"""What is kept encoded: for as long as it is true, and never more than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

from kraftline.broker.cache import MetadataCache
from kraftline.broker.encoded import EncodedTopic, EncodedTopics
from kraftline.broker.reach import Reach
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.loader import Manifest
from kraftline.schema.api.metadata import MetadataRequest, MetadataResponse
from kraftline.schema.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from kraftline.server.connection import Connection
from tests.recorder.frames import answered, frame
from tests.recorder.over_image import OurAnswers

METADATA = 3


def uuid(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def broker(number: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=number,
        broker_epoch=number,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=9000 + number),),
        fenced=False,
    )


def topic(name: str, number: int, partitions: int = 1) -> list[Message]:
    return [
        TopicRecord(name=name, topic_id=uuid(number)),
        *(
            PartitionRecord(
                partition_id=at, topic_id=uuid(number), replicas=(1, 2), isr=(1, 2), leader=1
            )
            for at in range(partitions)
        ),
    ]


def publish(cache: MetadataCache, records: Iterable[Message]) -> MetadataImage:
    delta = MetadataDelta(cache.image)
    for each in records:
        delta.replay(each)
    image = delta.apply(cache.image.provenance)
    cache.on_metadata_update(delta, image, cast(Manifest, None))
    return image


class Counting:
    """An encoding that notes which topics it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, topic: TopicImage, reach: Reach) -> EncodedTopic:
        self.asked.append(topic.name)
        return EncodedTopic(topic, topic.name.encode() * 10)


def asked_for(cache: MetadataCache, form: object = "form") -> list[str]:
    """The topics that are encoded when all are wanted."""
    counting = Counting()
    table = cache.encoded.table(form, "PLAINTEXT", cache.image.cluster, counting)
    table._encode = counting
    for name in cache.names(cache.image.topics):
        found = cache.image.topics.named(name)
        assert found is not None
        table.of(found)
    return counting.asked


def a_cluster() -> MetadataCache:
    cache = MetadataCache()
    publish(cache, [broker(1), broker(2), *topic("a", 1), *topic("b", 2), *topic("c", 3)])
    return cache


def test_only_a_topic_that_changed_is_encoded_again() -> None:
    cache = a_cluster()
    assert asked_for(cache) == ["a", "b", "c"]
    assert asked_for(cache) == []
    publish(cache, [PartitionChangeRecord(partition_id=0, topic_id=uuid(2), isr=(1,))])
    assert asked_for(cache) == ["b"]
    publish(cache, topic("aa", 4))
    assert asked_for(cache) == ["aa"]


def test_a_topic_made_anew_under_its_name_is_encoded_again() -> None:
    cache = a_cluster()
    asked_for(cache)
    publish(cache, [RemoveTopicRecord(topic_id=uuid(2)), *topic("b", 9)])
    assert asked_for(cache) == ["b"]


def test_a_broker_that_is_fenced_changes_all_that_is_told() -> None:
    cache = a_cluster()
    asked_for(cache)
    publish(cache, [FenceBrokerRecord(id=2, epoch=2)])
    assert asked_for(cache) == ["a", "b", "c"]


def test_a_broker_that_shuts_down_changes_nothing_that_is_told() -> None:
    cache = a_cluster()
    asked_for(cache)
    before = cache.image.cluster
    publish(
        cache,
        [BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, in_controlled_shutdown=1)],
    )
    assert cache.image.cluster is not before
    assert asked_for(cache) == []


def test_a_deleted_topic_is_forgotten() -> None:
    cache = a_cluster()
    asked_for(cache)
    table = cache.encoded.table("form", "PLAINTEXT", cache.image.cluster, Counting())
    before = table.size
    publish(cache, [RemoveTopicRecord(topic_id=uuid(1))])
    assert table.size == before - len(b"a") * 10


def test_names_stay_in_order() -> None:
    cache = a_cluster()
    assert cache.names(cache.image.topics) == ["a", "b", "c"]
    publish(cache, [*topic("B", 5), *topic("bb", 6), RemoveTopicRecord(topic_id=uuid(3))])
    assert cache.names(cache.image.topics) == ["B", "a", "b", "bb"]
    publish(cache, [RemoveTopicRecord(topic_id=uuid(1)), *topic("a", 7)])
    assert cache.names(cache.image.topics) == ["B", "a", "b", "bb"]
    # An image from before can still be asked for.
    assert cache.names(EMPTY.topics) == []
    assert cache.names(cache.image.topics) == ["B", "a", "b", "bb"]


def test_no_more_is_kept_than_there_is_room_for() -> None:
    cache = a_cluster()
    cache.encoded = EncodedTopics(most_bytes=70, most_tables=2)
    for form in ("one", "two", "three"):
        asked_for(cache, form)
    # Two tables of 30 bytes have room, and only two may be.
    assert asked_for(cache, "three") == []
    assert asked_for(cache, "two") == []
    assert asked_for(cache, "one") == ["a", "b", "c"]
    cache.encoded = EncodedTopics(most_bytes=40)
    asked_for(cache, "one")
    asked_for(cache, "two")
    assert asked_for(cache, "two") == []
    assert asked_for(cache, "one") == ["a", "b", "c"]
    # Where one alone is too much, nothing stays.
    cache.encoded = EncodedTopics(most_bytes=20)
    assert asked_for(cache) == ["a", "b", "c"]
    assert asked_for(cache) == ["a", "b", "c"]


def test_many_topics_are_encoded_in_turns_and_the_rest_goes_on() -> None:
    ours = OurAnswers()
    publish(
        ours.cache,
        [broker(1), broker(2), *(r for n in range(30) for r in topic(f"t{n:02}", n + 1, 500))],
    )
    asked = frame(MetadataRequest(topics=None), METADATA, 12)
    connection = cast(
        Connection, SimpleNamespace(listener=SimpleNamespace(name="PLAINTEXT"), peer="", state={})
    )
    turns = 0

    async def main() -> bytes:
        nonlocal turns
        answer = ours.requests.handle(asked, connection)
        assert answer is not None
        assert not isinstance(answer, list)
        making = asyncio.ensure_future(answer)
        while not making.done():
            turns += 1
            await asyncio.sleep(0)
        parts = making.result()
        assert parts is not None
        return b"".join(cast("list[bytes]", parts))

    first = asyncio.run(main())
    assert turns >= 3
    said = answered(first, METADATA, 12)
    assert isinstance(said, MetadataResponse)
    assert [each.name for each in said.topics] == [f"t{n:02}" for n in range(30)]
    assert {len(each.partitions) for each in said.topics} == {500}
    # From now on it is there at once.
    again = answered(ours.answer(asked) or b"", METADATA, 12)
    assert isinstance(again, MetadataResponse)
    assert again.topics == said.topics

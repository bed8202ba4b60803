"""What a broker's partitions make of new metadata: places, roles, configs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.broker.partition import Partition
from kraftline.broker.partitions import Partitions
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.loader.manifests import SnapshotManifest
from kraftline.metadata.partition import UNASSIGNED
from kraftline.node.standalone import standalone_config
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from kraftline.storage.log import LogConfig, Logs, log_config
from tests.broker.stories import batch

ME = 1
ONE, TWO = Uuid.parse("AAAAAAAAAAAAAAAAAAAAew"), Uuid.parse("AAAAAAAAAAAAAAAAAAAAfA")


class World:
    """Partitions over two directories, fed with records."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("one", "two"):
            (root / name).mkdir(exist_ok=True)
        self.logs = {
            ONE: Logs.open(root / "one", lambda topic: LogConfig()),
            TWO: Logs.open(root / "two", lambda topic: LogConfig()),
        }
        self.configured: list[str] = []
        self.image: MetadataImage = EMPTY
        self.partitions = Partitions(ME, self.logs, self._config_of, standalone_config())

    def _config_of(self, image: MetadataImage, topic: str) -> LogConfig:
        self.configured.append(topic)
        return log_config(image.configs.of(TOPIC, topic))

    def publish(self, *records: Message) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(Provenance())
        self.partitions.on_metadata_update(delta, self.image, SnapshotManifest(Provenance(), 0))

    def partition(self, topic: str, number: int = 0) -> Partition:
        found = self.partitions.find(topic, number, self.image.topics)
        assert isinstance(found, Partition), found
        return found

    def places(self) -> dict[str, str]:
        return {
            log.name: logs.path.rpartition("/")[2] for logs in self.logs.values() for log in logs
        }

    async def close(self) -> None:
        await self.partitions.close()
        for logs in self.logs.values():
            logs.release()


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[World], None]], None]:
    """Play something with a world, within an event loop."""

    async def scene(act: Callable[[World], None]) -> None:
        world = World(tmp_path)
        try:
            act(world)
        finally:
            await world.close()

    return lambda act: asyncio.run(scene(act))


def topic_id(number: int) -> Uuid:
    return Uuid((1000 + number).to_bytes(16, "big"))


def topic(
    number: int,
    directory: Uuid = UNASSIGNED,
    *,
    name: str | None = None,
    leader: int = ME,
    replicas: tuple[int, ...] = (ME,),
) -> tuple[Message, Message]:
    return (
        TopicRecord(name=name or f"t{number}", topic_id=topic_id(number)),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id(number),
            replicas=replicas,
            isr=replicas,
            leader=leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(directory if each == ME else UNASSIGNED for each in replicas),
        ),
    )


Play = Callable[[Callable[[World], None]], None]


def test_a_new_log_goes_where_the_metadata_says(play: Play) -> None:
    def act(world: World) -> None:
        for number in range(4):
            world.publish(*topic(number, TWO))
        assert world.places() == {f"t{number}-0": "two" for number in range(4)}
        assert world.partitions.assignments == {}

    play(act)


def test_one_without_a_place_goes_to_the_emptiest_and_that_has_to_be_told(play: Play) -> None:
    def act(world: World) -> None:
        world.publish(*topic(0, TWO))
        world.publish(*topic(1))
        assert world.places()["t1-0"] == "one"
        assert world.partitions.assignments == {(topic_id(1), 0): ONE}
        told = PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), directories=(ONE,))
        world.publish(told)
        assert world.partitions.assignments == {}

    play(act)


def test_a_log_that_is_there_stays_where_it_is(play: Play) -> None:
    def first(world: World) -> None:
        world.publish(*topic(0, ONE))
        world.partition("t0").log.append(batch(), 0)
        world.logs[ONE].close()
        world.logs[TWO].close()

    def second(world: World) -> None:
        world.publish(*topic(0, TWO))
        assert world.places() == {"t0-0": "one"}
        assert world.partition("t0").log.high_watermark == 1
        assert world.partitions.assignments == {(topic_id(0), 0): ONE}

    play(first)
    play(second)


def test_an_offline_directory_keeps_its_partitions_and_gets_no_new_ones(play: Play) -> None:
    def act(world: World) -> None:
        world.publish(*topic(0, ONE))
        world.publish(*topic(1, TWO))
        world.logs[TWO].disk.lost(OSError(5, "Input/output error"), "testing")
        world.publish(*topic(2, TWO))
        world.publish(*topic(3))
        find, topics = world.partitions.find, world.image.topics
        assert find("t1", 0, topics) is ErrorCode.KAFKA_STORAGE_ERROR
        assert find("t2", 0, topics) is ErrorCode.KAFKA_STORAGE_ERROR
        assert find("t4", 0, topics) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.places()["t3-0"] == "one"
        assert world.partition("t0").is_leader

    play(act)


def test_leaders_become_followers_and_back(play: Play) -> None:
    def change(leader: int) -> PartitionChangeRecord:
        return PartitionChangeRecord(partition_id=0, topic_id=topic_id(0), leader=leader)

    def act(world: World) -> None:
        world.publish(*topic(0, ONE, replicas=(ME, 2)))
        partition = world.partition("t0")
        assert (partition.is_leader, partition.leader_epoch) == (True, 0)
        world.publish(change(2))
        assert (partition.is_leader, partition.leader_epoch) == (False, 1)
        world.publish(change(ME))
        assert world.partition("t0") is partition
        assert (partition.is_leader, partition.leader_epoch) == (True, 2)
        assert partition.log.epochs.latest == 2

    play(act)


def test_a_replica_that_moves_away_is_deleted(play: Play) -> None:
    def act(world: World) -> None:
        world.publish(*topic(0, ONE, replicas=(ME, 2)))
        moved = PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id(0),
            replicas=(2,),
            isr=(2,),
            leader=2,
            directories=(UNASSIGNED,),
        )
        world.publish(moved)
        found = world.partitions.find("t0", 0, world.image.topics)
        assert found is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.places() == {}

    play(act)


def test_a_name_that_is_made_again_within_one_delta_is_another_log(play: Play) -> None:
    def act(world: World) -> None:
        world.publish(*topic(0, ONE))
        old = world.partition("t0")
        old.log.append(batch(), 0)
        world.publish(RemoveTopicRecord(topic_id=topic_id(0)), *topic(9, ONE, name="t0"))
        new = world.partition("t0")
        assert new is not old
        assert (new.topic_id, new.log.end_offset) == (topic_id(9), 0)
        assert not old.is_leader

    play(act)


def test_configs_reach_only_the_topics_that_changed(play: Play) -> None:
    def setting(kind: int, name: str, value: str | None) -> ConfigRecord:
        key = "retention.ms" if kind == TOPIC else "log.retention.ms"
        return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)

    def act(world: World) -> None:
        world.publish(*topic(0), *topic(1), *topic(2), setting(TOPIC, "t1", "5000"))
        assert sorted(world.configured) == ["t0", "t1", "t2"]
        assert world.partition("t1").log.config.retention_ms == 5000
        world.configured.clear()
        world.publish(setting(TOPIC, "t2", "7000"))
        assert world.configured == ["t2"]
        assert world.partition("t2").log.config.retention_ms == 7000
        world.publish(setting(TOPIC, "t1", None))
        assert world.partition("t1").log.config.retention_ms == 7 * 24 * 3_600_000
        world.configured.clear()
        world.publish(setting(4, "2", "1"))  # another broker's
        assert world.configured == []
        world.publish(setting(4, "", "1"))
        assert sorted(world.configured) == ["t0", "t1", "t2"]

    play(act)

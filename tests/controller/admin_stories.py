"""What administrators may ask a controller, as steps: partitions move, leaders are elected, brokers
are unregistered, features change, configs change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftline.schema.api import incremental_alter_configs as incremental
from kraftline.schema.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftline.schema.api.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftline.schema.api.elect_leaders import ElectLeadersRequest, TopicPartitions
from kraftline.schema.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftline.schema.api.unregister_broker import UnregisterBrokerRequest
from kraftline.schema.api.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kraftline.schema.types import Message
from tests.controller.broker_stories import Known, Step, beat, directory, features, register
from tests.controller.topic_requests import assigned, create, topic

PREFERRED, UNCLEAN = 0, 1
UPGRADE, SAFE, UNSAFE = 1, 2, 3
METADATA, ELR = "metadata.version", "eligible.leader.replicas.version"


def ask(request: Message, version: int) -> Step:
    def step(known: Known) -> tuple[Message, int]:
        return request, version

    return step


def move(
    name: str, *wanted: tuple[int, tuple[int, ...] | None], version: int = 1, resize: bool = True
) -> Step:
    topic = ReassignableTopic(
        name=name,
        partitions=tuple(
            ReassignablePartition(partition_index=number, replicas=replicas)
            for number, replicas in wanted
        ),
    )
    return ask(
        AlterPartitionReassignmentsRequest(
            topics=(topic,), timeout_ms=10_000, allow_replication_factor_change=resize
        ),
        version,
    )


def moving(*topics: tuple[str, tuple[int, ...]]) -> Step:
    """Of some partitions; of all without any."""
    wanted = tuple(
        ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
        for name, numbers in topics
    )
    return ask(ListPartitionReassignmentsRequest(topics=wanted or None, timeout_ms=10_000), 0)


def elect(kind: int, *topics: tuple[str, tuple[int, ...]], version: int = 2) -> Step:
    wanted = tuple(TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics)
    return ask(
        ElectLeadersRequest(election_type=kind, topic_partitions=wanted or None, timeout_ms=10_000),
        version,
    )


def unregister(broker: int) -> Step:
    return ask(UnregisterBrokerRequest(broker_id=broker), 0)


def feature(*updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Step:
    """Name, level and kind of change; before version 1 a kind above 1 allows a downgrade."""
    return ask(
        UpdateFeaturesRequest(
            timeout_ms=10_000,
            feature_updates=tuple(
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=level,
                    upgrade_type=1 if version == 0 else kind,
                    allow_downgrade=version == 0 and kind > UPGRADE,
                )
                for name, level, kind in updates
            ),
            validate_only=validate_only,
        ),
        version,
    )


def configure(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Step:
    return ask(
        incremental.IncrementalAlterConfigsRequest(
            resources=(
                incremental.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=tuple(
                        incremental.AlterableConfig(
                            name=key, config_operation=operation, value=value
                        )
                        for key, operation, value in changes
                    ),
                ),
            )
        ),
        1,
    )


def grow(name: str, count: int, replicas: Iterable[tuple[int, ...]]) -> Step:
    wanted = CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=tuple(CreatePartitionsAssignment(broker_ids=each) for each in replicas),
    )
    return ask(CreatePartitionsRequest(topics=(wanted,), timeout_ms=10_000), 3)


def up(*brokers: int) -> Iterator[Step]:
    for broker in brokers:
        yield register(broker)
        yield beat(broker, want_fence=False)


def moving_story() -> Iterator[Step]:
    """Reassignments: started, changed, listed, taken back, done at once, refused."""
    yield from up(1, 2, 3, 4)
    yield register(5)
    yield register(6, log_dirs=(directory(6, 0), directory(6, 1)))
    yield beat(6, want_fence=False)
    yield ask(create(assigned("a", (0, (1, 2, 3)), (1, (2, 3, 1)), (2, (3, 1, 2)))), 7)
    yield ask(create(assigned("b", (0, (1,)), (1, (2,)))), 7)
    yield moving()
    # Nothing to wait for.
    yield move("a", (0, (3, 2, 1)))
    yield move("a", (0, (3, 2, 1)))
    yield move("a", (1, (2, 3)))
    yield move("a", (1, (3,)), version=0)
    # New ones have to come into sync first.
    yield move("a", (0, (4, 2, 1)), (2, (1, 2, 4, 6)))
    yield move("b", (0, (2,)), (1, (5,)))
    yield moving()
    yield moving(("a", (0, 1, 2, 9)), ("no-such", (0,)), ("b", (1,)))
    yield moving(("a", (1,)))
    # Changed while it goes on.
    yield move("a", (0, (4, 6)))
    yield move("a", (0, (3, 2, 1)))
    yield move("b", (0, (3,)))
    yield moving()
    # Taken back.
    yield move("a", (0, None), (1, None), (2, None))
    yield move("b", (0, None), (1, None), (2, None))
    yield moving()
    # Refused.
    yield move("no-such", (0, (1,)), (0, None))
    yield move("a", (7, (1,)), (0, ()), (0, (1, 1)), (0, (9,)), (0, (1, -1)), (0, (5,)))
    yield move("a", (0, (1, 2)), (0, (1, 2, 4)), resize=False)
    yield move("b", (0, (2,)), (1, (1, 2)), resize=False)
    yield move("b", (0, (3,)), resize=False)
    yield move("b", (0, (1, 3)), resize=False)
    # Those who come and go while partitions move.
    yield beat(2, want_fence=True)
    yield beat(1, want_fence=True)
    yield moving()
    yield move("b", (0, None), (1, None))
    yield beat(1, want_fence=False)
    yield beat(2, want_fence=False)
    yield move("a", (0, None), (1, (1, 2)), (2, (6,)))
    yield moving()
    yield grow("a", 5, [(4, 6, 1), (6, 1, 2)])
    yield move("a", (3, (1, 6, 4)), (4, (2,)))


def electing_story() -> Iterator[Step]:
    """Elections that somebody asks for."""
    yield from up(1, 2, 3)
    yield ask(create(assigned("a", (0, (1, 2, 3)), (1, (2, 3, 1)))), 7)
    yield ask(create(assigned("b", (0, (1,)), (1, (2,)))), 7)
    least = {"min.insync.replicas": "2"}
    yield ask(create(topic("c", -1, -1, least, {0: (2, 3, 1)})), 7)
    yield elect(PREFERRED)
    yield elect(UNCLEAN)
    yield elect(PREFERRED, ("a", (0, 1, 7)), ("no-such", (0,)), ("b", ()))
    yield beat(1, want_fence=True)
    yield elect(PREFERRED, ("a", (0, 1)), ("b", (0, 1)))
    yield elect(UNCLEAN, ("a", (0, 1)), ("b", (0, 1)), version=1)
    yield beat(1, want_fence=False)
    yield elect(PREFERRED, ("a", (0,)), version=0)
    yield elect(PREFERRED, ("a", (0, 1)), ("b", (0,)), version=1)
    yield beat(2, want_fence=True)
    yield beat(3, want_fence=True)
    yield elect(UNCLEAN)
    yield beat(1, want_fence=True)
    yield beat(2, want_fence=False)
    yield elect(PREFERRED, ("a", (0, 1)), ("b", (0, 1)), ("c", (0,)))
    yield elect(UNCLEAN, ("a", (0, 1)), ("b", (0, 1)), ("c", (0,)))
    yield beat(3, want_fence=False)
    yield beat(1, want_fence=False)
    yield elect(UNCLEAN)
    yield elect(PREFERRED)
    yield elect(7, ("a", (0, 1)))
    yield elect(7, ("a", (0, 1)), version=1)
    yield elect(-1)


def unregistering_story() -> Iterator[Step]:
    """Brokers that are taken off the books."""
    yield from up(1, 2, 3)
    yield ask(create(assigned("a", (0, (1, 2, 3)), (1, (2, 3, 1)))), 7)
    yield ask(create(assigned("b", (0, (1,)), (1, (2,)))), 7)
    yield unregister(9)
    yield beat(3, want_fence=True)
    yield unregister(3)
    yield unregister(3)
    yield beat(3)
    yield unregister(2)
    yield move("a", (0, (1, 2)), (1, (1,)))
    yield register(3, 1)
    yield beat(3, want_fence=False)
    yield unregister(1)
    yield elect(UNCLEAN)
    yield from up(1)
    yield elect(UNCLEAN)


def feature_story() -> Iterator[Step]:
    """Features of a cluster of today."""
    yield from up(1)
    yield ask(create(topic("a", 2)), 7)
    yield feature((METADATA, 30, UPGRADE))
    yield feature((METADATA, 29, SAFE))
    yield feature(("group.version", 0, SAFE), validate_only=True)
    yield feature(("group.version", 0, SAFE), ("transaction.version", 1, UNSAFE))
    yield feature(("group.version", 0, SAFE), version=1)
    yield feature(("group.version", 1, UPGRADE), ("transaction.version", 2, UPGRADE), version=1)
    yield feature(("share.version", 0, SAFE), version=0)
    yield feature(("share.version", 0, UPGRADE), version=0)
    yield feature((ELR, 0, SAFE))
    yield configure(4, "", ("min.insync.replicas", 1, None))
    yield configure(4, "1", ("min.insync.replicas", 0, "2"))
    yield configure(2, "a", ("min.insync.replicas", 0, "2"))
    yield feature((ELR, 1, UPGRADE))
    yield configure(4, "1", ("min.insync.replicas", 0, "2"))
    yield feature(("kraft.version", 1, UPGRADE))
    yield feature(("kraft.version", 0, SAFE))
    yield feature(("kraft.version", 1, UPGRADE), ("group.version", 0, SAFE), version=1)
    for wrong in (
        ((METADATA, 31, UPGRADE),),
        ((METADATA, 29, UPGRADE),),
        ((METADATA, 29, UNSAFE),),
        ((METADATA, 6, UNSAFE),),
        ((METADATA, -1, UPGRADE),),
        ((METADATA, 30, SAFE),),
        ((METADATA, 30, 0),),
        ((METADATA, 30, 7),),
        (("foo", 1, UPGRADE),),
        (("foo", 0, SAFE),),
        (("group.version", 2, UPGRADE),),
        (("group.version", 1, SAFE),),
        (("group.version", 1, UPGRADE), ("foo", 1, UPGRADE)),
        (("kraft.version", 2, UPGRADE),),
        ((METADATA, 29, SAFE), ("group.version", 0, UPGRADE)),
    ):
        for version in (1, 2):
            yield feature(*wrong, version=version, validate_only=True)
    yield feature()


def old_feature_story() -> Iterator[Step]:
    """A cluster of an old version is raised step by step, and lowered where nothing is lost."""
    yield from up(1)
    yield register(2, features=features(metadata_version=(7, 21), group_version=(0, 0)))
    yield feature(("group.version", 1, UPGRADE))
    yield feature((METADATA, 22, UPGRADE))
    yield unregister(2)
    yield ask(create(topic("a", 2, 1, {"min.insync.replicas": "1"})), 7)
    yield feature((ELR, 1, UPGRADE))
    yield feature(("group.version", 1, UPGRADE))
    yield feature((METADATA, 22, UPGRADE))
    yield feature((METADATA, 21, SAFE), validate_only=True)
    yield feature((METADATA, 21, SAFE))
    yield feature((METADATA, 17, SAFE))
    yield feature((METADATA, 25, UPGRADE), ("transaction.version", 2, UPGRADE))
    yield feature((METADATA, 22, SAFE))
    yield feature((METADATA, 23, SAFE), ("transaction.version", 0, SAFE))
    yield feature((ELR, 1, UPGRADE))
    yield feature((METADATA, 30, UPGRADE))
    yield feature((METADATA, 22, UNSAFE))
    yield ask(create(topic("b", 2)), 7)


ADMIN_STORIES = {
    "reassignments": moving_story,
    "elections": electing_story,
    "unregistered": unregistering_story,
    "features": feature_story,
    "old features": old_feature_story,
}

"""Partitions, leaders, features and what else administrators ask of real Kafka and of us."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraftline.schema.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftline.schema.api.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kraftline.schema.api.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftline.schema.api.describe_producers import DescribeProducersRequest, TopicRequest
from kraftline.schema.api.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kraftline.schema.api.elect_leaders import ElectLeadersRequest, TopicPartitions
from kraftline.schema.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kraftline.schema.api.unregister_broker import UnregisterBrokerRequest
from kraftline.schema.api.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.comparing import Broker
from tests.broker.stories import batch, produce


def more(
    name: str, count: int, assigned: Iterable[tuple[int, ...]] | None = None
) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=(
            None
            if assigned is None
            else tuple(CreatePartitionsAssignment(broker_ids=each) for each in assigned)
        ),
    )


def grow(*topics: CreatePartitionsTopic, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)


def partitions(broker: Broker, name: str, count: int) -> object:
    """How many a topic has, once the broker knows of so many."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
    while True:
        answer = broker.message(request, 9)
        assert isinstance(answer, MetadataResponse)
        found = answer.topics[0].partitions
        if len(found) >= count and all(each.leader_id == 1 for each in found):
            return sorted((each.partition_index, each.replica_nodes) for each in found)


def partitions_are_added_in_every_version(broker: Broker) -> list[object]:
    name, _ = broker.topic("more")
    said: list[object] = []
    for version in range(4):
        said.append(broker.ask(grow(more(name, version + 2)), version))
        said.append(partitions(broker, name, version + 2))
    said.append(broker.ask(grow(more(name, 7, [(1,), (1,)])), 3))
    said.append(partitions(broker, name, 7))
    said.append(broker.ask(grow(more(name, 9), validate_only=True), 3))
    said.append(broker.ask(grow(more(name, 8), more("no-such", 3)), 3))
    said.append(partitions(broker, name, 8))
    return said


def partitions_that_cannot_be_added(broker: Broker) -> list[object]:
    name, _ = broker.topic("fixed", partitions=2)
    wrong = [
        *(more(name, 2), more(name, 1), more(name, -1), more(name, 0), more(name, 20_000)),
        *(more("no-such", 3), more("", 3), more(name, 3, []), more(name, 4, [(1,)])),
        *(more(name, 3, [(7,)]), more(name, 3, [()]), more(name, 3, [(1, 1)])),
        *(more(name, 4, [(1,), (2, 1)]), more(name, 3, [(-1,)])),
    ]
    said = [broker.ask(grow(each, validate_only=True), 3) for each in wrong]
    twice = more(name, 3)
    said.append(broker.ask(grow(twice, twice, more("no-such", 1), twice), 3))
    said.append(broker.ask(grow(), 3))
    said.append(partitions(broker, name, 2))
    return said


def leaders_are_elected(broker: Broker) -> list[object]:
    name, _ = broker.topic("elected", partitions=2)
    partitions(broker, name, 2)
    wanted = (TopicPartitions(topic=name, partitions=(0, 1, 7)),)
    more = (*wanted, TopicPartitions(topic="no-such", partitions=(0,)))
    said = [
        broker.ask(ElectLeadersRequest(election_type=kind, topic_partitions=more), version)
        for version in range(3)
        for kind in (0, 1, 7)
        if version or not kind
    ]
    everything = ElectLeadersRequest(topic_partitions=None)
    for version in range(3):
        answer: Any = broker.ask(everything, version)
        found = answer["replica_election_results"]
        said.append([each for each in found if each["topic"] == "elected"])
    return said


def partitions_are_not_moved_to_brokers_that_are_not_there(broker: Broker) -> list[object]:
    name, _ = broker.topic("moved", partitions=2)
    partitions(broker, name, 2)
    wanted: list[list[tuple[int, tuple[int, ...] | None]]] = [
        [(0, (1,)), (1, (2,)), (7, (1,)), (0, None)],
        [(0, ()), (0, (1, 1)), (0, (1, 2)), (0, (-1,))],
    ]
    said = []
    for version in (0, 1):
        for each in wanted:
            topics = tuple(
                ReassignableTopic(
                    name=topic,
                    partitions=tuple(
                        ReassignablePartition(partition_index=number, replicas=replicas)
                        for number, replicas in each
                    ),
                )
                for topic in (name, "no-such")
            )
            said.append(broker.ask(AlterPartitionReassignmentsRequest(topics=topics), version))
    moving = ListPartitionReassignmentsTopics(name=name, partition_indexes=(0, 1, 7))
    said.append(broker.ask(ListPartitionReassignmentsRequest(topics=(moving,)), 0))
    said.append(broker.ask(ListPartitionReassignmentsRequest(topics=None), 0))
    return said


def features_that_cannot_change(broker: Broker) -> list[object]:
    """What a cluster that others use shall keep: all of it is refused, or changes nothing."""
    said = []
    for version in range(3):
        for name, level, kind in (
            ("metadata.version", 31, 1),
            ("metadata.version", 29, 1),
            ("metadata.version", 30, 1),
            ("foo", 1, 1),
            ("group.version", 2, 1),
            ("kraft.version", 1, 1),
        ):
            update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            request = UpdateFeaturesRequest(feature_updates=(update,))
            said.append(broker.ask(request, version))
    return said


def the_quorum_is_described(broker: Broker) -> list[object]:
    said = []
    for wanted in (
        [("__cluster_metadata", (0,))],
        [("__cluster_metadata", (1,))],
        [("__cluster_metadata", (0, 1))],
        [("__cluster_metadata", (0,)), ("no-such", (0,))],
        [("no-such", (0, 3))],
        [("__cluster_metadata", ())],
        [],
    ):
        topics = tuple(
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=tuple(
                    DescribeQuorumRequestPartitionData(partition_index=each) for each in numbers
                ),
            )
            for name, numbers in wanted
        )
        for version in range(3):
            answer: Any = broker.ask(DescribeQuorumRequest(topics=topics), version)
            said.append(_without_progress(answer))
    return said


def _without_progress(value: Any) -> Any:
    """Without offsets, times and ids, but with whether they are there."""
    if isinstance(value, dict):
        own = ("high_watermark", "leader_epoch")
        return {
            key: each > 0
            if key in own or key.endswith(("_offset", "_timestamp"))
            else len(each) > 4
            if key == "replica_directory_id"
            # Which listeners there are is in the file.
            else bool(each)
            if key == "listeners"
            else _without_progress(each)
            for key, each in value.items()
        }
    return [_without_progress(each) for each in value] if isinstance(value, list) else value


def producers_are_described(broker: Broker) -> list[object]:
    name, id = broker.topic("producers", partitions=2)
    for sequence in (0, 1):
        data = batch(producer_id=7, producer_epoch=3, base_sequence=sequence)
        broker.ask(produce((name, id), [(0, data)], acks=-1), 11)
    topics = tuple(
        TopicRequest(name=each, partition_indexes=(0, 1, 7)) for each in (name, "no-such", "")
    )
    return [broker.ask(DescribeProducersRequest(topics=topics), 0)]


def replicas_are_not_moved_to_directories_that_are_not_there(broker: Broker) -> list[object]:
    name, _ = broker.topic("directories")
    said = []
    for path in ("/no/such", "relative", ""):
        topics = tuple(
            AlterReplicaLogDirTopic(name=each, partitions=(0, 1)) for each in (name, "no-such")
        )
        request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=topics),))
        said += [broker.ask(request, version) for version in (1, 2)]
    return said


def brokers_that_are_not_there_are_not_unregistered(broker: Broker) -> list[object]:
    return [broker.ask(UnregisterBrokerRequest(broker_id=each), 0) for each in (7, -1)]


ADMIN_STORIES = (
    partitions_are_added_in_every_version,
    partitions_that_cannot_be_added,
    leaders_are_elected,
    partitions_are_not_moved_to_brokers_that_are_not_there,
    features_that_cannot_change,
    the_quorum_is_described,
    producers_are_described,
    replicas_are_not_moved_to_directories_that_are_not_there,
    brokers_that_are_not_there_are_not_unregistered,
)

"""Partitions, leaders, features and what else administrators ask of real Kafka and of us."""

from __future__ import annotations

from collections.abc import Iterable

from kraftline.schema.api.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.broker.comparing import Broker


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


ADMIN_STORIES = (partitions_are_added_in_every_version, partitions_that_cannot_be_added)

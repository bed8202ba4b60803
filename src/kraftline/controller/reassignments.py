"""Partitions move to other replicas (AlterPartitionReassignments, ListPartitionReassignments).

- New replicas come before those that go, until the new ones are in sync; then those that go are
  dropped. Where nothing has to be waited for, that is one step.
- No replicas (null) take a reassignment back: what it added goes, what it would remove stays.
- A request may insist that the number of replicas stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kraftline.controller.decision import Decision
from kraftline.controller.java_order import in_number_order
from kraftline.controller.leaders import circumstances, may_lead_now, record_of
from kraftline.controller.new_partitions import bad_assignment, check_replicas
from kraftline.controller.partition_changes import Circumstances, Election, partition_change
from kraftline.controller.refusal import Refusal
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.partition import PartitionRegistration, Replicas
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord

_NONE_IN_PROGRESS: Final = Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)


def alter_partition_reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest, configs: TopicConfigs
) -> Decision[AlterPartitionReassignmentsResponse]:
    if not request.topics:
        return Decision(AlterPartitionReassignmentsResponse())
    may_resize = request.allow_replication_factor_change
    records: list[Versioned] = []
    responses = []
    for topic in request.topics:
        told = []
        for wanted in topic.partitions:
            outcome = Refusal(ErrorCode.NONE, None)
            try:
                records += _altered(image, configs, topic.name, wanted, may_resize=may_resize)
            except Refusal as refusal:
                outcome = refusal
            told.append(
                ReassignablePartitionResponse(
                    partition_index=wanted.partition_index,
                    error_code=outcome.code,
                    error_message=outcome.message,
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(told)))
    response = AlterPartitionReassignmentsResponse(
        error_message=None,
        allow_replication_factor_change=may_resize,
        responses=tuple(responses),
    )
    return Decision(response, records)


def _altered(
    image: MetadataImage,
    configs: TopicConfigs,
    name: str,
    wanted: ReassignablePartition,
    *,
    may_resize: bool,
) -> list[Versioned]:
    topic_id = image.topics.ids.get(name)
    if topic_id is None:
        raise _unknown(f"Unable to find a topic named {name}.")
    topic = image.topics.by_id[topic_id]
    number = wanted.partition_index
    partition = topic.partition(number)
    if partition is None:
        raise _unknown(f"Unable to find partition {name}:{number}.")
    around = circumstances(image, configs, topic, may_lead_now(image))
    if wanted.replicas is None:
        change = _taken_back(partition, topic, number, around)
    else:
        check_replicas(image, wanted.replicas, None)
        if not may_resize:
            _check_size(partition, wanted.replicas)
        around = msgspec.structs.replace(around, election=Election.ONLINE)
        change = _reassigned(partition, wanted.replicas, around)
    return [] if change is None else [record_of(change, topic, number, around)]


def _reassigned(
    partition: PartitionRegistration, wanted: Replicas, around: Circumstances
) -> PartitionChangeRecord | None:
    removing = tuple(sorted(set(partition.replicas) - set(wanted)))
    adding = tuple(sorted(set(wanted) - set(partition.replicas)))
    return partition_change(
        partition,
        around,
        replicas=(*wanted, *removing),
        removing=removing or None,
        adding=adding or None,
    )


def _check_size(partition: PartitionRegistration, wanted: Replicas) -> None:
    # While it moves it has both the old and the new ones, and is on its way to the new.
    now = len(set(partition.replicas) - set(partition.removing_replicas))
    if len(wanted) != now:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {now} to {len(wanted)}",
        )


def _taken_back(
    partition: PartitionRegistration, topic: TopicImage, number: int, around: Circumstances
) -> PartitionChangeRecord | None:
    if not _is_moving(partition):
        raise _NONE_IN_PROGRESS
    replicas = _without(partition.replicas, partition.adding_replicas)
    isr = _without(partition.isr, partition.adding_replicas)
    if not isr:
        if around.election is not Election.UNCLEAN:
            raise bad_assignment(
                f"Unable to revert partition assignment for {topic.name}:{number} because it would "
                "require an unclean leader election."
            )
        isr = replicas[:1]
    return partition_change(partition, around, isr=isr, replicas=replicas, removing=(), adding=())


def _without(replicas: Replicas, gone: Replicas) -> Replicas:
    return tuple(each for each in replicas if each not in gone)


def _is_moving(partition: PartitionRegistration) -> bool:
    return bool(partition.removing_replicas or partition.adding_replicas)


def list_partition_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Those of some partitions, or of all."""
    wanted: Iterable[tuple[TopicImage, Iterable[int]]]
    if request.topics is None:
        wanted = [
            (topic, in_number_order(number for number, _ in topic.items()))
            for topic in sorted(image.topics.by_id.values(), key=lambda each: each.name)
        ]
    else:
        wanted = [
            (image.topics.by_id[topic_id], each.partition_indexes)
            for each in request.topics
            if (topic_id := image.topics.ids.get(each.name)) is not None
        ]
    found = ((topic, tuple(_moving(topic, numbers))) for topic, numbers in wanted)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name=topic.name, partitions=partitions)
            for topic, partitions in found
            if partitions
        ),
    )


def _moving(topic: TopicImage, numbers: Iterable[int]) -> Iterable[OngoingPartitionReassignment]:
    for number in numbers:
        partition = topic.partition(number)
        if partition is not None and _is_moving(partition):
            yield OngoingPartitionReassignment(
                partition_index=number,
                replicas=partition.replicas,
                adding_replicas=partition.adding_replicas,
                removing_replicas=partition.removing_replicas,
            )


def _unknown(message: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)

"""Topics get more partitions (CreatePartitions).

- The number only grows. New partitions have as many replicas as the first one, placed by the
  rules of new topics, or as the request assigns them.
- A topic that is named twice is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from random import Random
from typing import Final

from kraftline.controller import leaders
from kraftline.controller.decision import Decision
from kraftline.controller.java_order import in_string_order
from kraftline.controller.new_partitions import (
    bad_assignment,
    check_assignment,
    partition_records,
)
from kraftline.controller.placement import place, usable_brokers
from kraftline.controller.refusal import Refusal
from kraftline.controller.topics import MOST_RECORDS
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kraftline.schema.api.error_codes import ErrorCode

_UNKNOWN: Final = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
_FORBIDDEN: Final = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
_TWICE: Final = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
_NO_REFUSAL: Final = Refusal(ErrorCode.NONE, None)


def create_partitions(
    image: MetadataImage,
    request: CreatePartitionsRequest,
    random: Random,
    forbidden: Container[str] = (),
) -> Decision[CreatePartitionsResponse]:
    """`forbidden` are topics that the one who asks may not change."""
    counts = Counter(topic.name for topic in request.topics)
    twice = in_string_order(name for name, count in counts.items() if count > 1)
    results = [_result(name, _TWICE) for name in twice]
    results += [
        _result(name, _FORBIDDEN)
        for name, count in counts.items()
        if count == 1 and name in forbidden
    ]
    records: list[Versioned] = []
    for topic in request.topics:
        if counts[topic.name] > 1 or topic.name in forbidden:
            continue
        outcome = _NO_REFUSAL
        try:
            made = _created(image, topic, random)
            if len(records) + len(made) > MOST_RECORDS:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
            records += made
        except Refusal as refusal:
            outcome = refusal
        results.append(_result(topic.name, outcome))
    response = CreatePartitionsResponse(results=tuple(results))
    return Decision(response, () if request.validate_only else records)


def _result(name: str, outcome: Refusal) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=outcome.code, error_message=outcome.message
    )


def _created(
    image: MetadataImage, wanted: CreatePartitionsTopic, random: Random
) -> list[Versioned]:
    known = image.topics.ids.get(wanted.name)
    if known is None:
        raise _UNKNOWN
    topic = image.topics.by_id[known]
    there = len(topic.partitions)
    if wanted.count == there:
        raise _bad_count(f"Topic already has {there} partition(s).")
    if wanted.count < there:
        raise _bad_count(
            f"The topic {wanted.name} currently has {there} partition(s); {wanted.count} would not "
            "be an increase."
        )
    additional = wanted.count - there
    if wanted.assignments is None:
        # One too many is refused like any number of them, and takes no memory.
        placed = _placed(image, topic, min(additional, MOST_RECORDS + 1), random)
    else:
        placed = _assigned(image, topic, wanted, additional)
    return partition_records(image, topic.id, placed, there)


def _assigned(
    image: MetadataImage, topic: TopicImage, wanted: CreatePartitionsTopic, additional: int
) -> list[tuple[int, ...]]:
    assert wanted.assignments is not None
    if len(wanted.assignments) != additional:
        raise bad_assignment(
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(wanted.assignments)} assignment(s) were specified."
        )
    factor = len(topic.partitions[0].replicas)
    placed = []
    for number, each in enumerate(wanted.assignments, len(topic.partitions)):
        check_assignment(image, number, each.broker_ids, factor)
        placed.append(each.broker_ids)
    return placed


def _placed(
    image: MetadataImage, topic: TopicImage, additional: int, random: Random
) -> list[tuple[int, ...]]:
    factor = len(topic.partitions[0].replicas)
    placed = place(usable_brokers(image), additional, factor, random)
    for replicas in placed:
        if not any(leaders.is_active(image, each) for each in replicas):
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently "
                "fenced or in controlled shutdown.",
            )
    return placed


def _bad_count(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_PARTITIONS, message)

"""Topics are made (CreateTopics).

- Each topic of a request stands for itself: a bad one does not keep others from being made.
- A topic's records are its name, its configs, then its partitions; ClearElr where a config changes
  what makes a replica eligible.
- More than 10,000 partitions or records in one request are refused as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import msgspec

from kraftline.controller import leaders
from kraftline.controller.collisions import colliding
from kraftline.controller.decision import Decision
from kraftline.controller.java_order import in_string_order
from kraftline.controller.new_partitions import (
    bad_assignment,
    check_assignment,
    partition_records,
)
from kraftline.controller.placement import place, usable_brokers
from kraftline.controller.refusal import Refusal
from kraftline.controller.topic_access import EVERYTHING, TopicAccess
from kraftline.controller.topic_configs import MIN_ISR, TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.random_ids import random_uuid
from kraftline.metadata.topic_names import what_is_wrong_with
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.clear_elr_record import ClearElrRecord
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from kraftline.storage.names import METADATA_TOPIC

MOST_RECORDS = 10_000
_NOT_CREATABLE = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


class TopicRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says of new topics, and where ids and placements come from."""

    configs: TopicConfigs
    partitions: int
    replication_factor: int
    random: Random = msgspec.field(default_factory=Random)
    new_id: Callable[[], Uuid] = random_uuid


def create_topics(
    image: MetadataImage,
    request: CreateTopicsRequest,
    rules: TopicRules,
    access: TopicAccess = EVERYTHING,
) -> Decision[CreateTopicsResponse]:
    counts = Counter(topic.name for topic in request.topics)
    twice = in_string_order(name for name, count in counts.items() if count > 1)
    once = [topic for topic in request.topics if counts[topic.name] == 1]
    wanted = [topic for topic in once if topic.name != METADATA_TOPIC and access.create(topic.name)]
    try:
        records, results = _create_all(image, wanted, rules)
    except Refusal as refusal:
        refused = tuple(_failed(topic.name, refusal) for topic in request.topics)
        return Decision(CreateTopicsResponse(topics=refused))
    results = [_as_described(each, access) for each in results]
    duplicate = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_failed(name, duplicate) for name in twice]
    internal = Refusal(
        ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
    )
    tried = {topic.name for topic in wanted}
    results += [
        _failed(name, internal if name == METADATA_TOPIC else _NOT_CREATABLE)
        for name in in_string_order(topic.name for topic in once)
        if name not in tried
    ]
    response = CreateTopicsResponse(topics=tuple(results))
    return Decision(response, () if request.validate_only else records)


def _as_described(result: CreatableTopicResult, access: TopicAccess) -> CreatableTopicResult:
    """As it is told to one who may perhaps not see what configs the topic has."""
    if result.error_code or access.describe_configs(result.name):
        return result
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_message=None,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )


def _create_all(
    image: MetadataImage, topics: Sequence[CreatableTopic], rules: TopicRules
) -> tuple[list[Versioned], list[CreatableTopicResult]]:
    if sum(_partitions(topic, rules) for topic in topics) > MOST_RECORDS:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
    records: list[Versioned] = []
    results = []
    for topic in topics:
        try:
            made, result = _create(image, topic, rules)
        except Refusal as refusal:
            results.append(_failed(topic.name, refusal))
            continue
        records += made
        results.append(result)
        if len(records) > MOST_RECORDS:
            raise Refusal(
                ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
            )
    return records, results


def _partitions(topic: CreatableTopic, rules: TopicRules) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return rules.partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _failed(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refusal.code, error_message=refusal.message)


def _create(
    image: MetadataImage, topic: CreatableTopic, rules: TopicRules
) -> tuple[list[Versioned], CreatableTopicResult]:
    _check_name(image, topic.name)
    configs = _configs(topic)
    if configs:
        rules.configs.check(configs)
    replicas = _replicas(image, topic, rules)
    topic_id = rules.new_id()
    records: list[Versioned] = [(TopicRecord(name=topic.name, topic_id=topic_id), 0)]
    records += _config_records(image, topic.name, configs)
    records += partition_records(image, topic_id, replicas)
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=tuple(
            CreatableTopicConfigs(
                name=each.name, value=each.value, read_only=False, config_source=each.source
            )
            for each in rules.configs.effective(image, configs)
        ),
    )
    return records, result


def _check_name(image: MetadataImage, name: str) -> None:
    if name in image.topics.ids:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = colliding(image, name)
    if other is not None:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )
    wrong = what_is_wrong_with(name)
    if wrong is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {wrong}")


def _configs(topic: CreatableTopic) -> dict[str, str]:
    unset = [each.name for each in topic.configs if each.value is None]
    if unset:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(unset)}",
        )
    return {each.name: each.value for each in topic.configs if each.value is not None}


def _config_records(image: MetadataImage, topic: str, configs: dict[str, str]) -> list[Versioned]:
    records: list[Versioned] = [
        (
            ConfigRecord(resource_type=TOPIC, resource_name=topic, name=name, value=configs[name]),
            0,
        )
        for name in in_string_order(configs)
    ]
    if MIN_ISR in configs and image.features.elr_enabled:
        records.append((ClearElrRecord(topic_name=topic), 0))
    return records


def _replicas(
    image: MetadataImage, topic: CreatableTopic, rules: TopicRules
) -> list[tuple[int, ...]]:
    if topic.assignments:
        return _assigned(image, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    factor = topic.replication_factor
    if factor == -1:
        factor = rules.replication_factor
    try:
        placed = place(usable_brokers(image), _partitions(topic, rules), factor, rules.random)
    except Refusal as refusal:
        raise Refusal(
            refusal.code,
            f"Unable to replicate the partition {factor} time(s): {refusal.message}",
        ) from None
    for replicas in placed:
        if not any(leaders.is_active(image, each) for each in replicas):
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently "
                "fenced or in controlled shutdown.",
            )
    return placed


def _assigned(image: MetadataImage, topic: CreatableTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != -1:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to "
            "-1.",
        )
    if topic.num_partitions != -1:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    found: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for each in topic.assignments:
        if each.partition_index in found:
            raise bad_assignment(
                f"Found multiple manual partition assignments for partition {each.partition_index}"
            )
        check_assignment(image, each.partition_index, each.broker_ids, factor)
        found[each.partition_index] = each.broker_ids
        factor = len(each.broker_ids)
    if sorted(found) != list(range(len(found))):
        raise bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [found[number] for number in range(len(found))]

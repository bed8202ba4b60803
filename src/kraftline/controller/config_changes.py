"""Configs of topics, brokers, client metrics and groups are changed, one key at a time
(IncrementalAlterConfigs) or all keys of a resource at once (AlterConfigs).

- Each resource stands for itself; of one resource all changes are made or none.
- Append and subtract start from what is set, or from the default where nothing is.
- A value that is set already writes nothing, but for brokers: it tells them to read their files
  again.
- Where a change concerns who is eligible to lead (min.insync.replicas), ClearElr follows; with
  eligible leader replicas on, the minimum of all brokers must stay set, and no broker has its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from kraftline.config.key import Key, Type
from kraftline.config.tables import BROKER as BROKER_KEYS
from kraftline.config.tables import TOPIC as TOPIC_KEYS
from kraftline.controller.broker_configs import BrokerConfigs
from kraftline.controller.config_rules import check_client_metrics, check_group
from kraftline.controller.decision import Decision
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.controller.topic_configs import MIN_ISR, TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ConfigResource,
)
from kraftline.metadata.topic_names import what_is_wrong_with
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api import alter_configs as legacy
from kraftline.schema.api import incremental_alter_configs as incremental
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.clear_elr_record import ClearElrRecord
from kraftline.schema.metadata.config_record import ConfigRecord

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATIONS: Final = ("SET", "DELETE", "APPEND", "SUBTRACT")
# Where lists can be appended to; Kafka does not look for those of other resources.
_KEYS: Final[Mapping[int, Mapping[str, Key]]] = {TOPIC: TOPIC_KEYS, BROKER: BROKER_KEYS}
_ALTERABLE: Final = frozenset({TOPIC, BROKER, CLIENT_METRICS, GROUP})
_NOT_THE_CLUSTER: Final = Refusal(
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
)
FORBIDDEN: Final = {
    TOPIC: Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    BROKER: _NOT_THE_CLUSTER,
    CLIENT_METRICS: _NOT_THE_CLUSTER,
    GROUP: Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
}
_NO_REFUSAL: Final = Refusal(ErrorCode.NONE, None)
_STUMBLED: Final = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)

R = TypeVar("R", incremental.AlterConfigsResource, legacy.AlterConfigsResource)


class ConfigRules(msgspec.Struct, frozen=True):
    """What the node's configuration says of configs, and the resources that the one who asks may
    not change."""

    topics: TopicConfigs
    brokers: BrokerConfigs
    forbidden: Container[ConfigResource] = ()


class _Changing(msgspec.Struct, frozen=True):
    """One resource of a request, and what is set for it."""

    image: MetadataImage
    rules: ConfigRules
    resource: ConfigResource
    now: Mapping[str, str]


def incremental_alter_configs(
    image: MetadataImage, request: incremental.IncrementalAlterConfigsRequest, rules: ConfigRules
) -> Decision[incremental.IncrementalAlterConfigsResponse]:
    records, outcomes = _each(image, request.resources, rules, _prepare_change, _changed)
    told = incremental.AlterConfigsResourceResponse
    response = incremental.IncrementalAlterConfigsResponse(
        responses=tuple(told(**_fields(*outcome)) for outcome in outcomes)
    )
    return Decision(response, () if request.validate_only else records)


def alter_configs(
    image: MetadataImage, request: legacy.AlterConfigsRequest, rules: ConfigRules
) -> Decision[legacy.AlterConfigsResponse]:
    records, outcomes = _each(image, request.resources, rules, _prepare_replacement, _replaced)
    told = legacy.AlterConfigsResourceResponse
    response = legacy.AlterConfigsResponse(
        responses=tuple(told(**_fields(*outcome)) for outcome in outcomes)
    )
    return Decision(response, () if request.validate_only else records)


def _fields(resource: R, outcome: Refusal) -> dict[str, Any]:
    """What both APIs say of a resource."""
    return {
        "error_code": outcome.code,
        "error_message": outcome.message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def _each(
    image: MetadataImage,
    resources: Iterable[R],
    rules: ConfigRules,
    prepare: Callable[[_Changing, R], None],
    change: Callable[[_Changing, R], list[ConfigRecord]],
) -> tuple[list[Versioned], list[tuple[R, Refusal]]]:
    """First all are looked at as a broker does, then those that it would pass on as the controller
    does."""
    wanted = list(resources)
    counts = Counter(ConfigResource(each.resource_type, each.resource_name) for each in wanted)
    outcomes: list[Refusal] = []
    changing: list[_Changing] = []
    for each in wanted:
        resource = ConfigResource(each.resource_type, each.resource_name)
        found = _Changing(image, rules, resource, image.configs.of(*resource))
        changing.append(found)
        outcome = _NO_REFUSAL
        try:
            if counts[resource] > 1:
                raise _bad_request("Each resource must appear at most once.")
            prepare(found, each)
        except Refusal as refusal:
            outcome = refusal
        outcomes.append(outcome)
    for at, found in enumerate(changing):
        if outcomes[at] is _NO_REFUSAL and found.resource in rules.forbidden:
            outcomes[at] = FORBIDDEN[found.resource.type]
    passed_on = [at for at, outcome in enumerate(outcomes) if outcome is _NO_REFUSAL]
    if any(_is_strange(wanted[at]) for at in passed_on):
        # The controller stumbles over all of them.
        for at in passed_on:
            outcomes[at] = _STUMBLED
        passed_on = []
    records: list[ConfigRecord] = []
    for at in passed_on:
        try:
            records += change(changing[at], wanted[at])
        except Refusal as refusal:
            outcomes[at] = refusal
    return _with_clearing(image, records), list(zip(wanted, outcomes, strict=True))


def _is_strange(wanted: incremental.AlterConfigsResource | legacy.AlterConfigsResource) -> bool:
    return isinstance(wanted, incremental.AlterConfigsResource) and any(
        each.config_operation not in (SET, DELETE, APPEND, SUBTRACT) for each in wanted.configs
    )


def _with_clearing(image: MetadataImage, records: list[ConfigRecord]) -> list[Versioned]:
    found: list[Versioned] = [(each, 0) for each in records]
    if image.features.elr_enabled:
        for each in records:
            if each.name == MIN_ISR:
                # No name stands for all topics.
                name = each.resource_name if each.resource_type == TOPIC else ""
                found.append((ClearElrRecord(topic_name=name), 0))
    return found


def _prepare_change(changing: _Changing, wanted: incremental.AlterConfigsResource) -> None:
    _check_names(each.name for each in wanted.configs)
    unset = [
        each.name
        for each in wanted.configs
        if each.config_operation != DELETE and each.value is None
    ]
    _check_resource(changing.resource, unset)
    if changing.resource.type == BROKER:
        _check_broker_change(changing, wanted)


def _changed(changing: _Changing, wanted: incremental.AlterConfigsResource) -> list[ConfigRecord]:
    """The records of one resource whose keys change one by one."""
    by_name = {each.name: each for each in wanted.configs}
    after: dict[str, str | None] = {}
    for name in in_string_order(by_name):
        before = changing.now.get(name)
        value = _new_value(changing, by_name[name])
        if value != before or changing.resource.type == BROKER:
            after[name] = value
    return _checked(changing, after, {})


def _new_value(changing: _Changing, wanted: incremental.AlterableConfig) -> str | None:
    operation, value = wanted.config_operation, wanted.value
    if operation == SET:
        return value
    if operation == DELETE:
        return None
    key = _KEYS.get(changing.resource.type, {}).get(wanted.name)
    if key is None or key.type is not Type.LIST:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Can't {_OPERATIONS[operation]} to key {wanted.name} because its type is not LIST.",
        )
    assert value is not None
    return _with_list_changed(changing.now.get(wanted.name, key.default), operation, value)


def _with_list_changed(before: str | None, operation: int, value: str) -> str:
    parts = [each for each in (before or "").split(",") if each]
    for each in value.split(","):
        if operation == APPEND:
            if each not in parts:
                parts.append(each)
        elif each in parts:
            parts.remove(each)
    return ",".join(parts)


def _prepare_replacement(changing: _Changing, wanted: legacy.AlterConfigsResource) -> None:
    _check_names(each.name for each in wanted.configs)
    _check_resource(changing.resource, [each.name for each in wanted.configs if each.value is None])
    if changing.resource.type == BROKER:
        brokers = changing.rules.brokers
        brokers.check_name(changing.resource.name)
        brokers.check(changing.image, changing.resource.name, _target(wanted))


def _target(wanted: legacy.AlterConfigsResource) -> dict[str, str]:
    return {each.name: each.value for each in wanted.configs if each.value is not None}


def _replaced(changing: _Changing, wanted: legacy.AlterConfigsResource) -> list[ConfigRecord]:
    """The records of one resource that is to have these keys and no others."""
    target = _target(wanted)
    after: dict[str, str | None] = {
        name: target[name]
        for name in in_string_order(target)
        if target[name] != changing.now.get(name) or changing.resource.type == BROKER
    }
    gone: dict[str, str | None] = {
        name: None for name in in_string_order(changing.now) if name not in target
    }
    return _checked(changing, after, gone)


def _check_names(names: Iterable[str]) -> None:
    if any(count > 1 for count in Counter(names).values()):
        raise _bad_request("Error due to duplicate config keys")


def _check_resource(resource: ConfigResource, unset: list[str]) -> None:
    if unset:
        raise _bad_request(f"Null value not supported for : {', '.join(unset)}")
    if resource.type not in _ALTERABLE:
        raise _bad_request(f"Unknown resource type {resource.type}")


def _check_broker_change(changing: _Changing, wanted: incremental.AlterConfigsResource) -> None:
    """As the broker sees it, before the controller is asked."""
    brokers, name = changing.rules.brokers, changing.resource.name
    brokers.check_name(name)
    target = brokers.heeded(changing.image, name)
    for each in wanted.configs:
        operation = each.config_operation
        if operation == SET:
            target[each.name] = each.value or ""
        elif operation == DELETE:
            target.pop(each.name, None)
        elif operation in (APPEND, SUBTRACT):
            key = BROKER_KEYS.get(each.name)
            if key is None:
                raise _invalid(f"Unknown config name: {each.name}")
            if key.type is not Type.LIST:
                raise _invalid(
                    f"Config value {_OPERATIONS[operation].lower()} is not allowed for config key: "
                    f"{each.name}"
                )
            before = target.get(each.name, key.default)
            target[each.name] = _with_list_changed(before, operation, each.value or "")
        else:
            raise _bad_request(f"Unknown operations type {operation}")
    brokers.check(changing.image, name, target)


def _checked(
    changing: _Changing, after: Mapping[str, str | None], gone: Mapping[str, str | None]
) -> list[ConfigRecord]:
    resource = changing.resource
    target = dict(changing.now)
    for name, value in (*after.items(), *gone.items()):
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value
    if changing.image.features.elr_enabled and resource.type == BROKER:
        _check_min_isr(resource, {**after, **gone})
    if resource.type == TOPIC:
        _check_topic(changing, target)
    elif resource.type == CLIENT_METRICS:
        check_client_metrics(resource.name, target)
    elif resource.type == GROUP:
        check_group(resource.name, target, changing.rules.brokers.running(changing.image))
    return [
        ConfigRecord(
            resource_type=resource.type, resource_name=resource.name, name=name, value=value
        )
        for name, value in (*after.items(), *gone.items())
    ]


def _check_min_isr(resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
    if MIN_ISR not in changes:
        return
    if resource.name:
        raise _invalid("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    if changes[MIN_ISR] is None:
        raise _invalid("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")


def _check_topic(changing: _Changing, target: Mapping[str, str]) -> None:
    name = changing.resource.name
    if not name:
        raise _bad_request("Default topic resources are not allowed.")
    wrong = what_is_wrong_with(name)
    if wrong is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {wrong}")
    changing.rules.topics.check(target)
    if name not in changing.image.topics.ids:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _bad_request(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, message)

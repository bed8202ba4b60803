"""DescribeConfigs (key 32), versions 1-4. KIP-133, KIP-226, KIP-569, KIP-714, KIP-1143.

- Topics, this broker, the default of all brokers (no name), its loggers, client metrics and groups;
  each resource stands for itself.
- Passwords, and keys that nobody knows, are told without their values.
- Synonyms and documentation only where they are asked for. The documentation is a line of what the
  key takes.
"""

from __future__ import annotations

import re
from typing import Final

from kraftline.broker import loggers
from kraftline.broker.config_entries import ConfigEntries, Entries, Wanted
from kraftline.broker.context import Context
from kraftline.controller.config_changes import FORBIDDEN
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from kraftline.metadata.topic_names import what_is_wrong_with
from kraftline.schema.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraftline.schema.api.error_codes import ErrorCode

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_OF_LOGGER: Final = 6
_KINDS: Final = frozenset({TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP})

_UNNAMED: Final = {
    BROKER_LOGGER: Refusal(ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
    CLIENT_METRICS: Refusal(
        ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"
    ),
    GROUP: Refusal(ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
}
_MALFORMED: Final = Refusal(
    ErrorCode.INVALID_REQUEST,
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details.",
)


def answer(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    if any(each.resource_type not in _KINDS for each in request.resources):
        # Kafka takes the whole request for broken.
        return _response([_failed(each, _MALFORMED) for each in request.resources])
    broker = context.broker
    image = broker.cache.image
    entries = ConfigEntries(
        image,
        broker.controller.admin.broker_configs,
        with_synonyms=request.include_synonyms,
        with_words=request.include_documentation,
    )
    results, forbidden = [], []
    for each in request.resources:
        if not _is_allowed(each, context):
            kind = BROKER if each.resource_type == BROKER_LOGGER else each.resource_type
            forbidden.append(_failed(each, FORBIDDEN[kind]))
            continue
        try:
            found = tuple(_entries(each, entries, context))
        except Refusal as refusal:
            results.append(_failed(each, refusal))
            continue
        results.append(
            DescribeConfigsResult(
                resource_type=each.resource_type, resource_name=each.resource_name, configs=found
            )
        )
    return _response([*results, *forbidden])


def _is_allowed(resource: DescribeConfigsResource, context: Context) -> bool:
    operation = Operation.DESCRIBE_CONFIGS
    if resource.resource_type == TOPIC:
        return context.may(operation, Resource.TOPIC, resource.resource_name)
    if resource.resource_type == GROUP:
        return context.may(operation, Resource.GROUP, resource.resource_name)
    return context.may(operation, Resource.CLUSTER)


def _entries(
    resource: DescribeConfigsResource, entries: ConfigEntries, context: Context
) -> Entries:
    image = context.broker.cache.image
    name = resource.resource_name
    given = image.configs.of(resource.resource_type, name)
    wanted = _wanted(resource)
    kind = resource.resource_type
    if not name and kind in _UNNAMED:
        raise _UNNAMED[kind]
    if kind == TOPIC:
        _check_topic(name, image)
        return entries.of_topic(given, wanted)
    if kind == CLIENT_METRICS:
        return entries.of_client_metrics(given, wanted)
    if kind == GROUP:
        return entries.of_group(given, wanted)
    if kind == BROKER and not name:
        return entries.of_all_brokers(wanted)
    _check_broker(name, context.broker.node_id, "or empty string, " if kind == BROKER else "")
    return entries.of_broker(wanted) if kind == BROKER else _loggers(wanted)


def _check_topic(name: str, image: MetadataImage) -> None:
    wrong = what_is_wrong_with(name)
    if wrong is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {wrong}")
    if name not in image.topics.ids:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")


def _loggers(wanted: Wanted) -> Entries:
    for name, level in sorted(loggers.levels().items()):
        if wanted(name):
            yield DescribeConfigsResourceResult(name=name, value=level, config_source=_OF_LOGGER)


def _wanted(resource: DescribeConfigsResource) -> Wanted:
    keys = frozenset(resource.configuration_keys or ())
    return keys.__contains__ if keys else lambda name: True


def _check_broker(name: str, node_id: int, besides: str) -> None:
    if not _NUMBER.fullmatch(name):
        raise _bad_request(f"Broker id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise _bad_request(f"Unexpected broker id, expected {node_id} {besides}but received {name}")


def _bad_request(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _failed(resource: DescribeConfigsResource, refusal: Refusal) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=refusal.code,
        error_message=refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _response(results: list[DescribeConfigsResult]) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=tuple(results))

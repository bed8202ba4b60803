"""FindCoordinator (key 10), versions 0-6. KIP-98, KIP-699, KIP-932.

- The coordinator of a group or a transactional id is the broker that leads its partition of the
  coordinator's topic; the client is told the address that this broker has on the same listener.
- Where the topic is not there yet it is being made when the answer goes out, whatever is said of
  topics on demand, and the answer is COORDINATOR_NOT_AVAILABLE; so it is without a leader.
- From version 4 on any number of keys of one type are asked for, and each has an error of its own.
- Share groups are not coordinated here: INVALID_REQUEST, as in Kafka before version 6 or where it
  is switched off. A type that nobody knows is INVALID_REQUEST for the whole request.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraftline.broker.cache import alive_brokers
from kraftline.broker.context import Context
from kraftline.broker.coordinators.placing import partition_for
from kraftline.broker.reach import NOBODY
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraftline.schema.coordinator.frame import OFFSETS, TRANSACTIONS

_BATCHED: Final = 4
# From version 4 on a key's own error is told without any.
_MESSAGES: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.INVALID_REQUEST: "This most likely occurs because of a request being malformed by "
    "the client library or the message was sent to an incompatible broker. See the broker logs for "
    "more details.",
}


class _Found(msgspec.Struct, frozen=True, gc=False):
    error: ErrorCode = ErrorCode.NONE
    node: int = NOBODY
    host: str = ""
    port: int = -1


def answer(request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    if context.version >= _BATCHED:
        return FindCoordinatorResponse(
            coordinators=tuple(
                _coordinator(key, _find(request.key_type, key, context))
                for key in request.coordinator_keys
            )
        )
    found = _find(request.key_type, request.key, context)
    return FindCoordinatorResponse(
        error_code=found.error,
        error_message=_MESSAGES.get(found.error, found.error.name),
        node_id=found.node,
        host=found.host,
        port=found.port,
    )


def failed(
    request: FindCoordinatorRequest, error: ErrorCode, context: Context
) -> FindCoordinatorResponse:
    nobody = _Found(error)
    message = _MESSAGES.get(error, error.name)
    if context.version >= _BATCHED:
        return FindCoordinatorResponse(
            coordinators=tuple(
                _coordinator(key, nobody, message) for key in request.coordinator_keys
            )
        )
    return FindCoordinatorResponse(
        error_code=error,
        error_message=message,
        node_id=nobody.node,
        host=nobody.host,
        port=nobody.port,
    )


def _coordinator(key: str, found: _Found, message: str = "") -> Coordinator:
    return Coordinator(
        key=key,
        node_id=found.node,
        host=found.host,
        port=found.port,
        error_code=found.error,
        error_message=message,
    )


def _find(key_type: int, key: str, context: Context) -> _Found:
    match key_type:
        case 0:
            if not context.may(Operation.DESCRIBE, Resource.GROUP, key):
                return _Found(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            return _leader(OFFSETS.name, key, context)
        case 1:
            if not context.may(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, key):
                return _Found(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return _leader(TRANSACTIONS.name, key, context)
        case 2:
            return _Found(ErrorCode.INVALID_REQUEST)
    raise Refusal(ErrorCode.INVALID_REQUEST, f"{key_type} is no type of coordinator")


def _leader(name: str, key: str, context: Context) -> _Found:
    image = context.broker.cache.image
    topic = image.topics.named(name)
    if topic is None or not topic.partitions:
        context.broker.auto_topics.create_internal(name)
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partition(partition_for(key, len(topic.partitions)))
    if partition is not None:
        for broker, at in alive_brokers(image, context.listener):
            if broker.id == partition.leader:
                return _Found(node=broker.id, host=at.host, port=at.port)
    return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)

"""Which function answers which API. What is announced is derived from here, so it cannot lie."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.registry import Api, api, response_class
from kraftline.schema.types import Message, Versions
from kraftline.server.parts import Part

if TYPE_CHECKING:
    from kraftline.broker.context import Context


class Body(msgspec.Struct, frozen=True):
    """A response that is encoded already, without its header."""

    parts: list[Part]


# None: nothing is answered.
Response: TypeAlias = Message | Body | None
Handler: TypeAlias = "Callable[[Any, Context], Response | Awaitable[Response]]"

# The module of broker/apis that answers an API, imported when the first such request comes: a
# node that is asked little starts quickly. Each has a function `answer(request, context)`.
MODULES: Final[Mapping[int, str]] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    34: "alter_replica_log_dirs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    55: "describe_quorum",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    64: "unregister_broker",
    65: "describe_transactions",
    66: "list_transactions",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}
# Announced from an older version than is answered, as Kafka does: old clients of librdkafka judge
# by it which codecs a broker takes.
_ANNOUNCED_FROM: Final = {0: 0}


# What controllers answer themselves, or otherwise than brokers do. All else that controllers answer
# in Kafka is the same on both: brokers pass it on to them.
_ON_CONTROLLER: Final = {
    18: "on_controller.api_versions",
    60: "on_controller.describe_cluster",
    62: "on_controller.broker_registration",
    63: "on_controller.broker_heartbeat",
    67: "on_controller.allocate_producer_ids",
    70: "on_controller.controller_registration",
    73: "on_controller.assign_replicas_to_dirs",
}
# A controller's Fetch is of the metadata log, for other voters and brokers: there are none here.
_OF_BROKERS_ALONE: Final = frozenset({1})


def controller_modules() -> Mapping[int, str]:
    """As `MODULES`, of a controller's listener."""
    shared = {
        key: module
        for key, module in MODULES.items()
        if "controller" in api(key).listeners and key not in _OF_BROKERS_ALONE
    }
    return shared | _ON_CONTROLLER


def answered(key: int, modules: Mapping[int, str] = MODULES) -> Versions | None:
    """The versions of an API that are answered; None where it is not answered at all."""
    if key not in modules:
        return None
    return _stable(api(key))


def announced(modules: Mapping[int, str] = MODULES) -> list[tuple[int, int, int]]:
    """Key, oldest and newest version of every API, for ApiVersions."""
    found = []
    for key in sorted(modules):
        versions = _stable(api(key))
        found.append((key, _ANNOUNCED_FROM.get(key, versions.first), versions.last))
    return found


def handler(key: int, modules: Mapping[int, str] = MODULES) -> Handler:
    """What answers an API, which must be one of the modules."""
    found: Handler = import_module(f"kraftline.broker.apis.{modules[key]}").answer
    return found


def failure(
    key: int,
    request: Any,
    error: ErrorCode,
    context: Context,
    modules: Mapping[int, str] = MODULES,
) -> Response:
    """The answer of an API to a request that could not be carried out: what the function `failed`
    of its module makes, or the error alone where the answer begins with one. None: neither."""
    module = import_module(f"kraftline.broker.apis.{modules[key]}")
    made: Callable[[Any, ErrorCode, Context], Response] | None = getattr(module, "failed", None)
    if made is not None:
        return made(request, error, context)
    response = response_class(key)
    if "error_code" not in response.__struct_fields__:
        return None
    return response(error_code=error)  # type: ignore[call-arg]  # just seen that it has it


def _stable(known: Api) -> Versions:
    if not known.latest_unstable:
        return known.versions
    return Versions(known.versions.first, known.versions.last - 1)

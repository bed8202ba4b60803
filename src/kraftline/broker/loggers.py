"""Levels of this process's loggers, under the names that Kafka has for levels.

A logger without a level of its own has that of the one above it; taking a level away gives it back
to that one, which the root has not.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Container
from typing import Final

from kraftline.controller.config_changes import APPEND, DELETE, SET, SUBTRACT
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.incremental_alter_configs import AlterableConfig, AlterConfigsResource

ROOT: Final = "root"
_LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_FORBIDDEN: Final = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


def levels() -> dict[str, str]:
    """Of all loggers that there are, by name."""
    found = {ROOT: _name(logging.getLogger().getEffectiveLevel())}
    for name, each in tuple(logging.root.manager.loggerDict.items()):
        if isinstance(each, logging.Logger):
            found[name] = _name(each.getEffectiveLevel())
    return found


def alter(resource: AlterConfigsResource, node_id: int, *, validate_only: bool = False) -> None:
    """Change levels, all of them or none; Refusal, in Kafka's words, where that cannot be."""
    names = Counter(each.name for each in resource.configs)
    if any(count > 1 for count in names.values()):
        raise _bad_request("Error due to duplicate config keys")
    changes = resource.configs
    unset = [c.name for c in changes if c.config_operation != DELETE and c.value is None]
    if unset:
        raise _bad_request(f"Null value not supported for : {', '.join(unset)}")
    _check_node(resource.resource_name, node_id)
    known = levels()
    for each in changes:
        _check(each, known)
    if validate_only:
        return
    for each in changes:
        logger = logging.getLogger(None if each.name == ROOT else each.name)
        is_set = each.config_operation == SET
        logger.setLevel(_LEVELS[each.value or ""] if is_set else logging.NOTSET)


def _check_node(name: str, node_id: int) -> None:
    try:
        number = int(name)
    except ValueError:
        raise _bad_request(f"Node id must be an integer, but it is: {name}") from None
    if number != node_id:
        raise _bad_request(f"Unexpected node id. Expected {node_id}, but received {name}")


def _check(change: AlterableConfig, known: Container[str]) -> None:
    operation = change.config_operation
    if operation in _FORBIDDEN:
        raise _bad_request(
            f"{_FORBIDDEN[operation]} operation is not allowed for the BROKER_LOGGER resource"
        )
    if operation not in (SET, DELETE):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if change.name not in known:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if operation == DELETE and change.name == ROOT:
        raise _bad_request("Removing the log level of the root logger is not allowed")
    if operation == SET and change.value not in _LEVELS:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported "
            f"log level. Valid log levels are {', '.join(sorted(_LEVELS))}",
        )


def _bad_request(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _name(level: int) -> str:
    return next((name for name, least in reversed(_LEVELS.items()) if level >= least), "TRACE")

"""What the configs of client metrics and of groups may be, in Kafka's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kraftline.config.effective import Config, once
from kraftline.config.key import Key, Value
from kraftline.config.tables import CLIENT_METRICS, GROUP
from kraftline.config.values import BadConfig, default_of, parse
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode

_MATCHED: Final = frozenset(
    {
        *("client_instance_id", "client_id", "client_software_name"),
        *("client_software_version", "client_source_address", "client_source_port"),
    }
)
_LEAST_INTERVAL_MS, _MOST_INTERVAL_MS = 100, 3_600_000

# A group's key, and whether its limits count only where the group sets it.
_BOUNDED: Final = (
    ("consumer.heartbeat.interval.ms", False),
    ("consumer.session.timeout.ms", False),
    ("consumer.assignment.interval.ms", True),
    ("share.heartbeat.interval.ms", False),
    ("share.session.timeout.ms", False),
    ("share.record.lock.duration.ms", False),
    ("share.delivery.count.limit", False),
    ("share.partition.max.record.locks", False),
    ("share.assignment.interval.ms", True),
    ("streams.heartbeat.interval.ms", False),
    ("streams.session.timeout.ms", False),
    ("streams.num.standby.replicas", False),
    ("streams.assignment.interval.ms", True),
)
_KINDS: Final = ("consumer", "share", "streams")


def check_client_metrics(name: str, given: Mapping[str, str]) -> None:
    """Refusal of a subscription that a client could not be given."""
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in in_string_order(given):
        if key not in CLIENT_METRICS:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    values = {key: _parsed(CLIENT_METRICS[key], text) for key, text in given.items()}
    interval = values.get("interval.ms", _MOST_INTERVAL_MS)
    assert isinstance(interval, int)
    if not _LEAST_INTERVAL_MS <= interval <= _MOST_INTERVAL_MS:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for interval.ms, interval must be between "
            f"{_LEAST_INTERVAL_MS} and {_MOST_INTERVAL_MS} (1 hour)",
        )
    patterns = values.get("match", [])
    assert isinstance(patterns, list)
    for pattern in patterns:
        if not _is_pattern(pattern):
            raise _invalid(f"Illegal client matching pattern: {pattern}")


def _is_pattern(text: str) -> bool:
    # Java's split leaves out what is empty at the end.
    parts = text.rstrip("=").split("=")
    if len(parts) != 2 or parts[0].strip() not in _MATCHED:
        return False
    try:
        re.compile(parts[1].strip())
    except re.error:
        return False
    return True


def check_group(name: str, given: Mapping[str, str], broker: Config) -> None:
    """Refusal of what a group cannot have; `broker` has the limits, and what counts where the
    group says nothing."""
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for each in in_string_order(given):
        if each not in GROUP:
            raise _invalid(f"Unknown group config name: {each}")
    values = {
        key.name: _parsed(key, given[key.name]) if key.name in given else group_default(key, broker)
        for key in GROUP.values()
    }
    for key, only_given in _BOUNDED:
        if key in given or not only_given:
            _check_bounds(key, _whole(values[key]), broker)
    for kind in _KINDS:
        timeout, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _whole(values[timeout]) <= _whole(values[interval]):
            raise _invalid(f"{timeout} must be greater than {interval}")


def group_default(key: Key, broker: Config) -> Value:
    """What counts for a group that does not set a key: the broker's, or Kafka's."""
    for synonym in key.synonyms:
        return broker[synonym]
    return default_of(key)


def _check_bounds(key: str, value: int, broker: Config) -> None:
    kind, _, rest = key.partition(".")
    rest = rest.removeprefix("num.")
    least, most = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
    # There is no least number of standby replicas.
    if key != "streams.num.standby.replicas" and value < broker.whole(least):
        raise _invalid(f"{key} must be greater than or equal to {least}")
    if value > broker.whole(most):
        raise _invalid(f"{key} must be less than or equal to {most}")


def _whole(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _parsed(key: Key, text: str) -> Value:
    try:
        return parse(key, once(key, text))
    except BadConfig as problem:
        raise _invalid(str(problem)) from None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, message)

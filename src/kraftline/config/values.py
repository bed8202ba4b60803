"""A config's text as a value, by Kafka's rules and with Kafka's words where it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from kraftline.config.key import Key, Type, Value
from kraftline.errors import KraftlineError

_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
_INTEGER = re.compile(r"[+-]?[0-9]+$")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
_REPLICAS = re.compile(r"([0-9]+:[0-9]+)?$")
_BY_DURATION = re.compile(
    r"by_duration:P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?$"
)


class BadConfig(KraftlineError):
    """A key or value that Kafka would refuse."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {key}: {reason}")
        self.key = key

    @classmethod
    def said(cls, key: str, text: str) -> BadConfig:
        """In words of its own."""
        problem = cls(key, "", "")
        problem.args = (text,)
        return problem


def parse(key: Key, text: str) -> Value:
    """The value of a key as it was written in a file or request."""
    value = _typed(key, text)
    _allowed(key, value)
    if key.name in _PATTERNS:
        _PATTERNS[key.name](key, value)
    return value


def default_of(key: Key) -> Value:
    """The default as a value; None where there is none. Kafka does not check its own defaults."""
    return None if key.default is None else _typed(key, key.default)


def _typed(key: Key, given: str) -> Value:
    text = given.strip()
    match key.type:
        case Type.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise BadConfig(key.name, given, "Expected value to be either true or false")
            return text.lower() == "true"
        case Type.SHORT | Type.INT | Type.LONG:
            most = 1 << (_BITS[key.type] - 1)
            if _INTEGER.match(text) and -most <= int(text) < most:
                return int(text)
            raise BadConfig(key.name, given, f"Not a number of type {key.type.name}")
        case Type.DOUBLE:
            if not _DOUBLE.match(text):
                raise BadConfig(key.name, given, "Not a number of type DOUBLE")
            return float(text)
        case Type.LIST:
            return re.split(r"\s*,\s*", text) if text else []
        case _:
            return text


def _allowed(key: Key, value: Value) -> None:
    if isinstance(value, list):
        _allowed_list(key, value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        _allowed_number(key, value)
    elif isinstance(value, str):
        if key.choices:
            _chosen(key, value)
        if key.not_empty and not value:
            raise BadConfig(key.name, value, "String must be non-empty")


def _allowed_number(key: Key, number: float) -> None:
    value = as_java_says(number) if isinstance(number, float) else number
    if key.besides is not None:
        if number != key.besides and not _within(key, number):
            reason = f"Value must be between {key.least} and {key.most} or equal to {key.besides}"
            raise BadConfig(key.name, value, reason)
    elif key.least is not None and number < key.least:
        raise BadConfig(key.name, value, f"Value must be at least {key.least}")
    elif key.most is not None and number > key.most:
        raise BadConfig(key.name, value, f"Value must be no more than {key.most}")


def as_java_says(number: float) -> str:
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    digits, exponent = f"{Decimal(repr(number)).normalize():E}".split("E")
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(exponent)}"


def _within(key: Key, value: float) -> bool:
    return (key.least is None or value >= key.least) and (key.most is None or value <= key.most)


def _allowed_list(key: Key, value: list[str]) -> None:
    if key.not_empty and not value:
        known = f"[{', '.join(key.choices)}]" if key.choices else "any non-empty value"
        raise BadConfig.said(
            key.name, f"Configuration '{key.name}' must not be empty. Valid values include: {known}"
        )
    if key.is_set and len(set(value)) != len(value):
        raise BadConfig.said(key.name, f"Configuration '{key.name}' values must not be duplicated.")
    for each in value:
        if key.is_set and not each:
            raise BadConfig.said(key.name, f"Configuration '{key.name}' values must not be empty.")
        if key.choices:
            _chosen(key, each)


def _chosen(key: Key, value: str) -> None:
    if key.any_case:
        if value.lower() not in {choice.lower() for choice in key.choices}:
            said = ", ".join(key.choices)
            raise BadConfig(key.name, value, f"String must be one of (case insensitive): {said}")
    elif value not in key.choices:
        raise BadConfig(key.name, value, f"String must be one of: {', '.join(key.choices)}")


def _throttled(key: Key, value: Value) -> None:
    assert isinstance(value, list)
    # As Kafka: a star may stand among values that are empty.
    if "".join(value) != "*" and not all(_REPLICAS.match(each) for each in value):
        pattern = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        raise BadConfig(
            key.name,
            f"[{', '.join(value)}]",
            f"{key.name} must be the literal '*' or a list of replicas in the following format: "
            f"{pattern}",
        )


def _reset(key: Key, value: Value) -> None:
    if value not in ("earliest", "latest") and not _BY_DURATION.match(str(value)):
        raise BadConfig(
            key.name,
            value,
            f"Invalid value `{value}` for configuration {key.name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )


_PATTERNS: Final[dict[str, Callable[[Key, Value], None]]] = {
    "leader.replication.throttled.replicas": _throttled,
    "follower.replication.throttled.replicas": _throttled,
    "share.auto.offset.reset": _reset,
}

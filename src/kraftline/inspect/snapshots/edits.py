"""What may be changed in a snapshot, as a person asks for it on the command line."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from kraftline.metadata.image.configs import BROKER, TOPIC, ConfigResource

# Kafka's numbers of what can have configs. Those of loggers live in the broker's memory only.
RESOURCES: Final = {"topic": TOPIC, "broker": BROKER, "client-metrics": 16, "group": 32}
_SHAPE = "TYPE:NAME:KEY=VALUE, such as topic:orders:retention.ms=86400000"


class DeleteTopic(msgspec.Struct, frozen=True):
    name: str


class RemoveBroker(msgspec.Struct, frozen=True):
    id: int


class SetConfig(msgspec.Struct, frozen=True):
    """`value` None removes the key."""

    resource: ConfigResource
    key: str
    value: str | None


Edit: TypeAlias = DeleteTopic | RemoveBroker | SetConfig


def parse_config(text: str) -> SetConfig:
    """`topic:orders:retention.ms=86400000`; `broker::key=value` is for all brokers; nothing
    behind the = removes the key. ValueError where it is not of that shape."""
    before, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} has no =; write {_SHAPE}")
    resource, key = _key(before, text)
    return SetConfig(resource, key, value or None)


def parse_unset(text: str) -> SetConfig:
    """`topic:orders:retention.ms`."""
    if "=" in text:
        raise ValueError(f"{text!r}: to remove a key, name no value")
    return SetConfig(*_key(text, text), None)


def _key(text: str, whole: str) -> tuple[ConfigResource, str]:
    kind, colon, rest = text.partition(":")
    # Names of groups may have colons in them, keys never do.
    name, another, key = rest.rpartition(":")
    if not colon or not another or not key:
        raise ValueError(f"{whole!r} is not {_SHAPE}")
    if kind not in RESOURCES:
        raise ValueError(f"{kind!r} is none of {', '.join(RESOURCES)} ({whole!r})")
    if kind == "broker":
        if name and not (name.isascii() and name.isdigit()):
            raise ValueError(f"{name!r} is no broker's id; leave it empty for all ({whole!r})")
    elif not name:
        raise ValueError(f"whose {key}? Write {_SHAPE}")
    return ConfigResource(RESOURCES[kind], name), key

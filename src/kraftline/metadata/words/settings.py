"""What happened to configs, features, quotas and producer ids."""

from __future__ import annotations

import re

from kraftline.metadata.features import METADATA_VERSION, UnsupportedFeature, from_level
from kraftline.metadata.image.client_quotas import QuotaEntity
from kraftline.metadata.image.configs import BROKER, TOPIC, ConfigResource
from kraftline.metadata.words.change import Change
from kraftline.metadata.words.values import HIDDEN, config_value, is_secret, number, size

_BROKER_ID = re.compile("[0-9]{1,10}")
_KINDS = {TOPIC: "topic", BROKER: "broker", 8: "loggers of broker", 16: "client metrics"}
_RATES = ("producer_byte_rate", "consumer_byte_rate")
_ENTITIES = {"client-id": "client", "ip": "address"}


def resource_name(resource: ConfigResource) -> str:
    """A config's owner: `topic orders`, `all brokers`, `group g`."""
    if resource.type == BROKER and not resource.name:
        return "all brokers"
    kind = {**_KINDS, 32: "group"}.get(resource.type, f"resource of type {resource.type}")
    return f"{kind} {resource.name}"


def config_change(
    resource: ConfigResource, key: str, before: str | None, after: str | None
) -> Change | None:
    """None where nothing is different."""
    if before == after:
        return None
    owner = resource_name(resource)
    was, now = config_value(key, before), config_value(key, after)
    if after is None:
        kind, text = "config.removed", f"{key} of {owner} was removed (it was {was})"
    elif before is None:
        kind, text = "config.set", f"{key} of {owner} set to {now}"
    else:
        kind, text = "config.changed", f"{key} of {owner}: {was} -> {now}"
    if is_secret(key):
        before, after = before and HIDDEN, after and HIDDEN
    broker = resource.name if resource.type in (BROKER, 8) else ""
    return Change(
        kind=kind,
        subject=owner,
        text=text,
        before={key: before},
        after={key: after},
        topic=resource.name if resource.type == TOPIC else None,
        brokers=(int(broker),) if _BROKER_ID.fullmatch(broker) else (),
    )


def feature_change(name: str, before: int | None, after: int | None) -> Change | None:
    """Levels; None or 0 is off."""
    was, now = before or 0, after or 0
    if was == now:
        return None
    if not now:
        kind, text = "feature.removed", f"{name} was turned off (it was {_level(name, was)})"
    elif not was:
        kind, text = "feature.set", f"{name} set to {_level(name, now)}"
    else:
        kind = "feature.raised" if now > was else "feature.lowered"
        text = f"{name} {kind[8:]} {_level(name, was)} -> {_level(name, now)}"
    return Change(kind=kind, subject=name, text=text, before=before, after=after)


def _level(name: str, level: int) -> str:
    if name == METADATA_VERSION:
        try:
            return f"{from_level(level).name} (level {level})"
        except UnsupportedFeature:
            return f"level {level}"
    return str(level)


def entity_name(entity: QuotaEntity) -> str:
    """`user alice`, `user alice with client app`, `any client`."""
    said = []
    # Kafka's own order: the user first.
    for kind, name in sorted(entity, key=lambda each: each[0] != "user"):
        kind = _ENTITIES.get(kind, kind)
        said.append(f"any {kind} without its own" if name is None else f"{kind} {name}")
    return " with ".join(said) or "nobody"


def quota_value(key: str, value: float) -> str:
    if key in _RATES:
        return f"{size(int(value))}/s" if value == int(value) else f"{number(value)} bytes/s"
    if key == "request_percentage":
        return f"{number(value)}%"
    if key.endswith("_rate"):
        return f"{number(value)}/s"
    return number(value)


def quota_change(
    entity: QuotaEntity, key: str, before: float | None, after: float | None
) -> Change | None:
    if before == after:
        return None
    owner = entity_name(entity)
    if after is None:
        assert before is not None
        kind = "quota.removed"
        text = f"{key} of {owner} is no longer limited (it was {quota_value(key, before)})"
    elif before is None:
        kind, text = "quota.set", f"{key} of {owner} limited to {quota_value(key, after)}"
    else:
        kind = "quota.changed"
        text = f"{key} of {owner}: {quota_value(key, before)} -> {quota_value(key, after)}"
    return Change(kind=kind, subject=owner, text=text, before={key: before}, after={key: after})


def producer_ids_change(before: int, after: int) -> Change | None:
    if before == after:
        return None
    text = f"producer ids up to {after - 1:,} were given to brokers"
    return Change(
        kind="producer-ids.allocated",
        subject="producer ids",
        text=text,
        before=before,
        after=after,
        minor=True,
    )

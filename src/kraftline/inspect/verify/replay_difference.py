"""Two images record by record: what only one has, and what differs, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from kraftline.metadata.features import METADATA_VERSION, MINIMUM, MetadataVersion
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.metadata import PARTS
from kraftline.metadata.words.values import is_secret
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.types import Message

Identity: TypeAlias = tuple[Any, ...]

_MOST_FIELDS = 4
_RESOURCES: Final = {2: "topic", 4: "broker", 8: "loggers of broker", 16: "client metrics"}
# Never shown: whoever reads a report need not know them.
_SECRET_FIELDS: Final = frozenset({"salt", "stored_key", "server_key", "hmac"})


class Difference(msgspec.Struct, frozen=True):
    """One thing that the first image has as `one`, the second as `other`; None: not at all."""

    identity: Identity
    one: Message | None
    other: Message | None

    @property
    def record(self) -> Message:
        found = self.other if self.one is None else self.one
        assert found is not None
        return found


def differences(one: MetadataImage, other: MetadataImage) -> list[Difference]:
    """All that is different once both are written, for the first one's metadata version: what
    that version has no words for is in no snapshot."""
    version = one.features.metadata_version or MINIMUM
    options = WriteOptions(version, one.features.elr_enabled, _unheard)
    found: list[Difference] = []
    for part in PARTS:
        mine, theirs = getattr(one, part), getattr(other, part)
        if mine == theirs:
            continue
        if part == "features":
            found += _versions(one, other)
        if part == "topics":
            found += _topics(one, other, options)
        else:
            found += _pairs(_written(mine, options), _written(theirs, options))
    return found


def _versions(one: MetadataImage, other: MetadataImage) -> Iterator[Difference]:
    mine, theirs = one.features.metadata_version, other.features.metadata_version
    if mine != theirs:
        yield Difference(("feature", METADATA_VERSION), _version(mine), _version(theirs))


def _version(version: MetadataVersion | None) -> Message | None:
    if version is None:
        return None
    return FeatureLevelRecord(name=METADATA_VERSION, feature_level=version.level)


def _topics(
    one: MetadataImage, other: MetadataImage, options: WriteOptions
) -> Iterator[Difference]:
    """Topic by topic, so that only what differs is ever written out."""
    for topic_id in {**one.topics.by_id, **other.topics.by_id}:
        mine, theirs = one.topics.by_id.get(topic_id), other.topics.by_id.get(topic_id)
        if mine != theirs:
            yield from _pairs(_written(mine, options), _written(theirs, options))


def _written(part: object, options: WriteOptions) -> dict[Identity, Message]:
    if part is None:
        return {}
    write = part.write  # type: ignore[attr-defined]  # every part of an image has it
    return {identity(message): message for message, _ in write(options)}


def _pairs(one: dict[Identity, Message], other: dict[Identity, Message]) -> Iterator[Difference]:
    for key in sorted({**one, **other}, key=repr):
        mine, theirs = one.get(key), other.get(key)
        if mine != theirs:
            yield Difference(key, mine, theirs)


# What a record is about, by its type: a name for it, and the fields that tell which.
_KEYS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "TopicRecord": ("topic", ("topic_id",)),
    "RemoveTopicRecord": ("topic", ("topic_id",)),
    "PartitionRecord": ("partition", ("topic_id", "partition_id")),
    "PartitionChangeRecord": ("partition", ("topic_id", "partition_id")),
    "ConfigRecord": ("config", ("resource_type", "resource_name", "name")),
    "RegisterBrokerRecord": ("broker", ("broker_id",)),
    "UnregisterBrokerRecord": ("broker", ("broker_id",)),
    "BrokerRegistrationChangeRecord": ("broker", ("broker_id",)),
    "FenceBrokerRecord": ("broker", ("id",)),
    "UnfenceBrokerRecord": ("broker", ("id",)),
    "RegisterControllerRecord": ("controller", ("controller_id",)),
    "UnregisterControllerRecord": ("controller", ("controller_id",)),
    "FeatureLevelRecord": ("feature", ("name",)),
    "AccessControlEntryRecord": ("acl", ("id",)),
    "RemoveAccessControlEntryRecord": ("acl", ("id",)),
    "UserScramCredentialRecord": ("scram", ("name", "mechanism")),
    "RemoveUserScramCredentialRecord": ("scram", ("name", "mechanism")),
    "DelegationTokenRecord": ("token", ("token_id",)),
    "RemoveDelegationTokenRecord": ("token", ("token_id",)),
    "ClientQuotaRecord": ("quota", ("entity", "key")),
    "ProducerIdsRecord": ("producer ids", ()),
}


def identity(message: Message) -> Identity:
    """What a record is about: two with the same are about one thing."""
    kind, fields = _KEYS.get(type(message).__name__, (type(message).__name__, ()))
    return kind, *(getattr(message, field) for field in fields)


def in_words(difference: Difference, one: MetadataImage, other: MetadataImage) -> str:
    """`retention.ms of topic orders (CONFIG)`, and how it differs where both have it."""
    record = difference.record
    name = type(record).__name__.removesuffix("Record")
    text = f"{_subject(record, one, other)} ({name})"
    if difference.one is None or difference.other is None:
        return text
    said = []
    secrets = _SECRET_FIELDS
    if isinstance(record, ConfigRecord) and is_secret(record.name):
        secrets |= {"value"}
    for field in record.__struct_fields__:
        mine, theirs = getattr(difference.one, field), getattr(difference.other, field)
        if mine != theirs:
            shown = f"{field} {_show(theirs)} instead of {_show(mine)}"
            said.append(field if field in secrets else shown)
    more = len(said) - _MOST_FIELDS
    tail = f" and {more} more" if more > 0 else ""
    return f"{text}: {', '.join(said[:_MOST_FIELDS])}{tail}"


def _subject(record: Message, one: MetadataImage, other: MetadataImage) -> str:
    kind, *key = identity(record)
    match kind:
        case "topic":
            return f"topic {getattr(record, 'name', key[0])}"
        case "partition":
            topic = one.topics.by_id.get(key[0]) or other.topics.by_id.get(key[0])
            return f"partition {key[0] if topic is None else topic.name}-{key[1]}"
        case "config":
            where = _RESOURCES.get(key[0], "resource")
            return f"{key[2]} of {where} {key[1] or '(all)'}"
        case "scram":
            return f"the SCRAM credential of {key[0]}"
        case "quota":
            entity = ", ".join(
                f"{each.entity_type} {each.entity_name or '(default)'}"
                for each in record.entity  # type: ignore[attr-defined]  # of a quota's record
            )
            return f"quota {key[1]} of {entity}"
    return " ".join(map(str, (kind, *key)))


def _show(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = f"[{text}]" if isinstance(value, tuple) else text
    return text if len(text) <= 60 else f"{text[:57]}..."


def _unheard(loss: str) -> None:
    """A snapshot never has what its version cannot say."""

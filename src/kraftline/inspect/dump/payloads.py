"""Typed keys and values as Kafka's own dump prints them, chosen by the kind of log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from kraftline.errors import BadData, Corrupt, NotKafka
from kraftline.inspect.dump.sources import Decoder, Source, Wanted
from kraftline.records.batch import Batch
from kraftline.schema.control.frame import ControlType, control_json, decode_control_key
from kraftline.schema.coordinator import frame as coordinator
from kraftline.schema.coordinator.frame import CoordinatorTopic
from kraftline.schema.metadata.frame import record_json
from kraftline.schema.metadata.registry import TYPE_IDS
from kraftline.storage.files import shown
from kraftline.storage.segment import SegmentReader

if TYPE_CHECKING:
    from kraftline.inspect.dump.rows import Row

# How the value of a TopicRecord begins: frame version 1, type 2.
_TOPIC_RECORD = b"\x01\x02"
# Fields that hold names of topics: what is committed, owned, assigned or subscribed to.
_NAMES = frozenset(
    {
        "topic",
        "topicName",
        "topics",
        "subscribedTopicNames",
        "sourceTopics",
        "repartitionSinkTopics",
    }
)
# The same number in configs and in ACLs.
_TOPIC = 2
_TOPICS = {
    Decoder.OFFSETS: coordinator.OFFSETS,
    Decoder.TRANSACTIONS: coordinator.TRANSACTIONS,
    Decoder.SHARE: coordinator.SHARES,
}


class Payloads(Protocol):
    """Reads the keys and values of one kind of log."""

    typed: bool

    def fill(self, row: Row) -> None:
        """Set the row's payloads; BadData when they cannot be read."""

    def type_of(self, row: Row) -> str | None:
        """The name of the record's type, as far as the row's payloads say."""


@cache
def payloads_of(decoder: Decoder) -> Payloads:
    if decoder is Decoder.METADATA:
        return _Metadata()
    topic = _TOPICS.get(decoder)
    return _Untyped() if topic is None else _Coordinator(topic)


class _Untyped:
    typed = False

    def fill(self, row: Row) -> None:
        """Nothing is known of the bytes of users' topics."""

    def type_of(self, row: Row) -> str | None:
        return None


class _Metadata:
    typed = True

    def fill(self, row: Row) -> None:
        if row.value is None:
            raise Corrupt("a metadata record without a value")
        row.payload = record_json(row.value)

    def type_of(self, row: Row) -> str | None:
        return row.payload["type"] if isinstance(row.payload, dict) else None


class _Coordinator:
    typed = True

    def __init__(self, topic: CoordinatorTopic) -> None:
        self._topic = topic

    def fill(self, row: Row) -> None:
        if row.key is None:
            raise Corrupt(f"a record of {self._topic.name} without a key")
        row.key_payload = coordinator.key_json(self._topic, row.key)
        if row.value is None:
            row.payload = None
            return
        kind = int(row.key_payload["type"])
        row.payload = coordinator.value_json(self._topic, kind, row.value)

    def type_of(self, row: Row) -> str | None:
        """Kafka prints numbers; people ask by name: `OFFSET_COMMIT`."""
        if not isinstance(row.key_payload, dict):
            return None
        return self._topic.records[int(row.key_payload["type"])][0].upper()


def fill_control(row: Row) -> None:
    """The payload of a control record; one of a type that is not known has only its bytes."""
    if row.key is None or row.value is None:
        raise Corrupt("a control record without key or value")
    kind = decode_control_key(row.key)
    try:
        name = ControlType(kind).name
    except ValueError:
        row.payload = {"type": str(kind)}
        return
    row.payload = {"type": name, "data": control_json(kind, row.value)}


def control_type(row: Row) -> str | None:
    return row.payload["type"] if isinstance(row.payload, dict) else None


def type_names(sources: list[Source]) -> Callable[[Row], str | None]:
    """What names the types of these sources' rows, and of segments that follow them."""
    kinds: dict[str, Payloads] = {}
    for source in sources:
        path = shown(source.path)
        kinds[path] = kinds[os.path.dirname(path)] = payloads_of(source.decoder)

    def type_of(row: Row) -> str | None:
        if row.is_control:
            return control_type(row)
        return (kinds.get(row.file) or kinds[os.path.dirname(row.file)]).type_of(row)

    return type_of


def known_types() -> Iterator[str]:
    """The names of all types of records, as rows name them."""
    yield from TYPE_IDS
    for topic in _TOPICS.values():
        yield from (name.upper() for name, _, _ in topic.records.values())
    yield from (kind.name for kind in ControlType)


class TopicFilter:
    """Whether a record of an internal log is about one of the wanted topics.

    Metadata speaks of topics by id. The ids of wanted names are learned from the records that
    name them: as they pass by, and before from those that nobody asked to see.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._ids: set[str] = set()

    def learn(self, paths: Iterable[str]) -> None:
        """Take the ids out of segments and snapshots of a metadata log; they may be damaged."""
        for path in paths:
            try:
                reader = SegmentReader(path, on_damage=lambda damage: None)
            except NotKafka:
                continue  # it is told of where its records are wanted
            with reader:
                for batch, _ in reader.batches():
                    self._learn(batch)

    def _learn(self, batch: Batch) -> None:
        try:
            values = [record.value for record in batch.records(check_crc=False)]
        except BadData:
            return
        for value in values:
            if value is not None and value.startswith(_TOPIC_RECORD) and not batch.is_control:
                with suppress(BadData):
                    payload = record_json(value)
                    self._names(payload["type"], payload["data"])

    def takes(self, row: Row) -> bool:
        for payload in (row.key_payload, row.payload):
            if isinstance(payload, dict):
                data = payload.get("data")
                if isinstance(data, dict) and self._names(payload.get("type"), data):
                    return True
        return False

    def _names(self, kind: str | None, data: dict[str, Any]) -> bool:
        if kind == "TOPIC_RECORD":
            if not self._wanted.topic(data["name"]):
                return False
            self._ids.add(data["topicId"])
            return True
        if kind in ("CONFIG_RECORD", "ACCESS_CONTROL_ENTRY_RECORD"):
            return data["resourceType"] == _TOPIC and self._wanted.topic(data["resourceName"])
        return any(
            self._wanted.topic(value) if name in _NAMES else value in self._ids
            for name, value in _strings(data)
            if name in _NAMES or name == "topicId"
        )


def _strings(data: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a tree of JSON, with the name of the field it is in."""
    if isinstance(data, str):
        yield name, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _strings(value, key)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value, name)

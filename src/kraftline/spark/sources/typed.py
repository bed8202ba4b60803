"""Typed columns for Kafka's internal topics: `decode` = offsets, transactions or share.

`key_type` (`OFFSET_COMMIT`, or `COMMIT` and `ABORT` for markers), `key_payload` and
`value_payload` as the JSON of `kraftline dump`, and `problem`: why a record has no payload. For
offsets also flat: `group` of every record that has one, and what was committed. A deleted entry
has a key and no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kraftline.errors import BadData, Corrupt
from kraftline.schema.control.frame import ControlType, control_json, decode_control_key
from kraftline.schema.coordinator import frame
from kraftline.schema.coordinator.frame import CoordinatorTopic
from kraftline.spark.sources.segment_columns import arrow_schema, timestamps

Json: TypeAlias = dict[str, Any]

_TOPICS: Final = {
    "offsets": frame.OFFSETS,
    "transactions": frame.TRANSACTIONS,
    "share": frame.SHARES,
}
_PAYLOADS: Final = (
    StructField("key_type", StringType()),
    StructField("key_payload", StringType()),
    StructField("value_payload", StringType()),
    StructField("problem", StringType()),
)
_OFFSETS: Final = (
    StructField("group", StringType()),
    StructField("offset_topic", StringType()),
    StructField("offset_partition", IntegerType()),
    StructField("committed_offset", LongType()),
    StructField("committed_leader_epoch", IntegerType()),
    StructField("metadata", StringType()),
    StructField("commit_timestamp", TimestampType()),
    StructField("expire_timestamp", TimestampType()),
)
_COMMITS: Final = frozenset({"OFFSET_COMMIT", "LEGACY_OFFSET_COMMIT"})
_KEYS_KEPT: Final = 100_000  # the same groups and partitions come again and again


def typed_fields(decode: str) -> tuple[StructField, ...]:
    """The columns that a way of decoding adds."""
    return (*_PAYLOADS, *_OFFSETS) if decode == "offsets" else _PAYLOADS


def internal_topic(decode: str) -> str:
    """The topic whose records a way of decoding understands."""
    return _TOPICS[decode].name


class _Key(msgspec.Struct, frozen=True):
    number: int
    type: str
    payload: Json


class Typed:
    """Decodes the records of one internal topic into columns."""

    def __init__(self, decode: str) -> None:
        self._topic = _TOPICS[decode]
        self._fields = arrow_schema(StructType(list(typed_fields(decode))))
        self._keys: dict[bytes, _Key] = {}

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """What must be read of a record to give these columns."""
        typed = any(name in self._fields.names for name in names)
        return ("key", "value", "is_control") if typed else ()

    def columns(self, rows: dict[str, pa.Array], names: Sequence[str]) -> dict[str, pa.Array]:
        """Those of the columns that are asked."""
        asked = [name for name in names if name in self._fields.names]
        if not asked:
            return {}
        found = [
            self._row(key, value, is_control)
            for key, value, is_control in zip(
                rows["key"].to_pylist(),
                rows["value"].to_pylist(),
                rows["is_control"].to_pylist(),
                strict=True,
            )
        ]
        return {name: self._column(name, [row.get(name) for row in found]) for name in asked}

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        if name.endswith("_timestamp"):
            # None and -1 both say that there is no such time.
            return timestamps(
                pa.array([-1 if each is None else each for each in values], pa.int64())
            )
        if name.endswith("_payload"):
            values = [None if each is None else msgspec.json.encode(each) for each in values]
            return pa.array(values, pa.binary()).cast(pa.string())
        return pa.array(values, self._fields.field(name).type)

    def _row(self, key: bytes | None, value: bytes | None, is_control: bool) -> Json:
        row: Json = {}
        try:
            if is_control:
                _fill_control(row, key, value)
            else:
                self._fill(row, key, value)
        except BadData as error:
            row["problem"] = error.reason
        return row

    def _fill(self, row: Json, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            raise Corrupt(f"a record of {self._topic.name} without a key")
        known = self._key(key)
        named = known.payload["data"]
        row["key_type"] = known.type
        row["key_payload"] = known.payload
        row["group"] = named.get("group", named.get("groupId"))
        is_commit = known.type in _COMMITS
        if is_commit:
            row["offset_topic"] = named["topic"]
            row["offset_partition"] = named["partition"]
        if value is None:
            return
        payload: Json = frame.value_json(self._topic, known.number, value)
        row["value_payload"] = payload
        if is_commit:
            _fill_commit(row, payload["data"])

    def _key(self, key: bytes) -> _Key:
        known = self._keys.get(key)
        if known is None:
            payload = frame.key_json(self._topic, key)
            number = int(payload["type"])
            known = _Key(number, _type_name(self._topic, number), payload)
            if len(self._keys) >= _KEYS_KEPT:
                self._keys.clear()
            self._keys[key] = known
        return known


def _type_name(topic: CoordinatorTopic, number: int) -> str:
    return topic.records[number][0].upper()


def _fill_commit(row: Json, data: Json) -> None:
    row["committed_offset"] = data["offset"]
    row["committed_leader_epoch"] = data.get("leaderEpoch", -1)
    row["metadata"] = data["metadata"]
    row["commit_timestamp"] = data.get("commitTimestamp")
    row["expire_timestamp"] = data.get("expireTimestamp")


def _fill_control(row: Json, key: bytes | None, value: bytes | None) -> None:
    if key is None or value is None:
        raise Corrupt("a control record without key or value")
    number = decode_control_key(key)
    try:
        row["key_type"] = ControlType(number).name
    except ValueError:
        row["key_type"] = str(number)
        return
    row["value_payload"] = {"type": row["key_type"], "data": control_json(number, value)}

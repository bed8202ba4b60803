"""Rows of `kafka_segments`, and the same rows as Kafka's own reader gives them."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import kraftline.spark
from tests.fixture_files import FIXTURES, records

NODE = FIXTURES / "topics_4_3" / "data" / "node-1"
SECOND = FIXTURES / "topics_4_3" / "data" / "node-1-second"
LOG = "00000000000000000000.log"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read(
    spark: SparkSession, *paths: Path | str, schema: str | None = None, **options: str | int
) -> DataFrame:
    kraftline.spark.register(spark)
    reader = spark.read.format("kafka_segments").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load([str(path) for path in paths])


def instant(milliseconds: int) -> datetime | None:
    """As it should come out: in UTC; None where a record has no time."""
    return None if milliseconds < 0 else _EPOCH + timedelta(milliseconds=milliseconds)


def kafkas_rows(path: Path) -> list[dict[str, Any]]:
    """The records of a fixture's file, as Kafka's FileRecords says, in our columns."""
    topic, _, partition = path.parent.name.rpartition("-")
    return [
        {
            "topic": topic,
            "partition": int(partition),
            "offset": each["offset"],
            "timestamp": instant(each["timestamp"]),
            "timestamp_type": each["timestampType"],
            "key": _bytes(each["key"]),
            "value": _bytes(each["value"]),
            "headers": [(key, _bytes(value)) for key, value in each["headers"]],
            "leader_epoch": each["partitionLeaderEpoch"],
            "producer_id": each["producerId"],
            "producer_epoch": each["producerEpoch"],
            "sequence": each["sequence"],
            "codec": each["codec"],
            "is_transactional": each["isTransactional"],
            "is_control": each["isControl"],
            "file": str(path),
            "position": each["position"],
        }
        for each in records(path)
    ]


def plain(frame: DataFrame) -> list[dict[str, Any]]:
    """Collected rows as dicts, by file and offset."""
    rows = []
    for row in frame.collect():
        each = row.asDict()
        for name in ("key", "value"):
            if each.get(name) is not None:
                each[name] = bytes(each[name])
        if "headers" in each:
            each["headers"] = [
                (header.key, None if header.value is None else bytes(header.value))
                for header in each["headers"]
            ]
        if each.get("timestamp") is not None:
            each["timestamp"] = each["timestamp"].astimezone(UTC)
        rows.append(each)
    return sorted(rows, key=lambda each: (str(each.get("file")), each.get("offset", 0)))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)

"""Builds for tests: lakes from copies of logs, and logs that are made for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kraftline.lake.lake import Lake
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema import metadata as m
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.types import Message, Uuid
from kraftline.spark.build import Outcome, build

SEGMENT = "00000000000000000000.log"
Row = dict[str, Any]


def build_lake(spark: SparkSession, lake: Path, *inputs: Path) -> Outcome:
    paths = [str(path) for path in inputs]
    return build(spark, paths, str(lake), cluster_id="c")


def rows(lake: Path, table: str, *columns: str) -> list[Row]:
    """The rows of a table in a fixed order."""
    found: list[Row] = Lake.at(str(lake)).dataset(table).to_pylist()
    if columns:
        found = [{name: row[name] for name in columns} for row in found]
    return sorted(found, key=repr)


def names(lake: Path) -> dict[str, tuple[int, int | None]]:
    """Topics, and from which offset to which each was there."""
    return {
        row["topic"]: (row["valid_from_offset"], row["valid_to_offset"])
        for row in rows(lake, "topics")
    }


def topic(name: str) -> m.TopicRecord:
    return m.TopicRecord(name=name, topic_id=topic_id(name))


def removed(name: str) -> m.RemoveTopicRecord:
    return m.RemoveTopicRecord(topic_id=topic_id(name))


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"-"))


def batch(offset: int, *messages: Message, epoch: int = 1, version: int = 0) -> bytes:
    """A batch of the metadata log; the time of an offset is a thousand times as much, in ms."""
    records = [
        Record(offset + n, 1000 * (offset + n), None, encode_record(message, version))
        for n, message in enumerate(messages)
    ]
    return build_batch(records, partition_leader_epoch=epoch)


def topics_log(first: int, count: int, epoch: int = 1) -> bytes:
    """A topic a batch, each named after its offset (and epoch, from the second on)."""
    suffix = "" if epoch == 1 else f"-{epoch}"
    return b"".join(
        batch(offset, topic(f"t{offset}{suffix}"), epoch=epoch)
        for offset in range(first, first + count)
    )


def write_log(directory: Path, *parts: bytes, base: int = 0) -> Path:
    folder = directory / "__cluster_metadata-0"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{base:020d}.log"
    file.write_bytes(b"".join(parts))
    return file


def copied(source: Path, to: Path) -> Path:
    """A copy of a directory; the files can be changed."""
    shutil.copytree(source, to)
    for file in to.rglob("*"):
        file.chmod(0o755 if file.is_dir() else 0o644)
    return to

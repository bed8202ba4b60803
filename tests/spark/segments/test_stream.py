"""A stream over growing files: nothing lost, nothing twice, nothing before it is whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

import kraftline.spark
from kraftline.errors import BadData
from kraftline.records import Record, build_batch
from kraftline.records.control import build_end_txn_batch
from kraftline.spark.sources.segment_columns import RECORD
from kraftline.spark.sources.segment_options import parse_options
from kraftline.spark.sources.segments_stream import SegmentStreamReader
from kraftline.storage.names import format_segment_file
from tests.effort import SOAK
from tests.oracle.driver import wait_until
from tests.spark.segments.rows import LOG, NODE
from tests.spark.segments.test_isolation import consumers_view

SCHEMA = "topic string, partition int, offset long, value binary"


def stream(spark: SparkSession, path: Path, **options: str | int) -> DataFrame:
    kraftline.spark.register(spark)
    reader = spark.readStream.format("kafka_segments").schema(SCHEMA).options(**options)
    return reader.load(str(path))


class Sink:
    """Runs a stream over and over from one checkpoint, as far as there is something to read."""

    def __init__(self, spark: SparkSession, root: Path, source: Path, **options: str | int) -> None:
        self._spark, self._root, self._source, self._options = spark, root, source, options

    def run(self) -> list[int]:
        """Read what is there; the number of rows in each micro-batch."""
        query = (
            stream(self._spark, self._source, **self._options)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._root / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self._root / "out"))
        )
        query.awaitTermination()
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    def offsets(self, topic: str | None = None) -> list[int]:
        rows = self._spark.read.parquet(str(self._root / "out")).collect()
        return sorted(row.offset for row in rows if topic in (None, row.topic))


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "grows-0"
    folder.mkdir(parents=True)
    return folder


def batch(offset: int, count: int, **fields: int | bool) -> bytes:
    records = [Record(offset + n, 1000 + n, None, b"value %d" % (offset + n)) for n in range(count)]
    return build_batch(records, **fields)  # type: ignore[arg-type]


def append(folder: Path, data: bytes, base: int = 0) -> None:
    with open(folder / format_segment_file(base), "ab") as log:
        log.write(data)


def commits(root: Path) -> int:
    """How many micro-batches a query has finished."""
    return len(list((root / "checkpoint" / "commits").glob("[0-9]*")))


def more_commits(root: Path, before: int) -> bool:
    return commits(root) > before


def test_each_run_reads_what_came_since(spark: SparkSession, growing: Path, tmp_path: Path) -> None:
    sink = Sink(spark, tmp_path, growing.parent)
    append(growing, batch(0, 10))
    sink.run()
    assert sink.offsets() == list(range(10))
    append(growing, batch(10, 5))
    append(growing, batch(15, 5), base=15)  # the segment rolled
    other = growing.parent / "other-0"
    other.mkdir()
    append(other, batch(0, 3))
    sink.run()
    assert sink.offsets("grows") == list(range(20))
    assert sink.offsets("other") == list(range(3))
    assert sink.run() == []


def test_a_half_written_batch_waits_until_it_is_whole(
    spark: SparkSession, growing: Path, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path, growing)
    late = batch(10, 5)
    append(growing, batch(0, 10) + late[:40])
    sink.run()
    assert sink.offsets() == list(range(10))
    append(growing, late[40:])
    sink.run()
    assert sink.offsets() == list(range(15))


def test_a_batch_before_zeros_waits_until_its_checksum_is_right(
    spark: SparkSession, growing: Path, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path, growing)
    first, late = batch(0, 10), batch(10, 5)
    append(growing, first + late[:-20] + bytes(5000))
    sink.run()
    assert sink.offsets() == list(range(10))
    (growing / LOG).write_bytes(first + late + bytes(4980))
    sink.run()
    assert sink.offsets() == list(range(15))


def test_a_limit_makes_small_micro_batches(
    spark: SparkSession, growing: Path, tmp_path: Path
) -> None:
    append(growing, b"".join(batch(n, 7) for n in range(0, 70, 7)))
    other = growing.parent / "other-0"
    other.mkdir()
    append(other, batch(0, 3))
    sink = Sink(spark, tmp_path, growing.parent, maxRecordsPerTrigger=20)
    assert sink.run() == [20, 20, 20, 13]
    assert sink.offsets("grows") == list(range(70))
    assert sink.offsets("other") == list(range(3))


def test_an_open_transaction_is_waited_for(
    spark: SparkSession, growing: Path, tmp_path: Path
) -> None:
    def ended(offset: int, producer: int, commit: bool) -> bytes:
        return build_end_txn_batch(
            commit=commit,
            base_offset=offset,
            timestamp=2000,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
        )

    def part(offset: int, producer: int) -> bytes:
        return batch(
            offset,
            3,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )

    sink = Sink(spark, tmp_path, growing, isolation="read_committed")
    append(growing, batch(0, 2) + part(2, 7) + part(5, 8) + ended(8, 8, commit=False))
    sink.run()
    assert sink.offsets() == [0, 1]
    append(growing, ended(9, 7, commit=True) + batch(10, 2))
    sink.run()
    assert sink.offsets() == [0, 1, 2, 3, 4, 10, 11]


def test_a_committed_stream_ends_where_a_consumer_does(spark: SparkSession, tmp_path: Path) -> None:
    source = NODE / "transactions-0"
    sink = Sink(spark, tmp_path, source, isolation="read_committed", maxRecordsPerTrigger=7)
    sink.run()
    assert sink.offsets() == [row["offset"] for row in consumers_view(source)]


def test_segments_deleted_before_they_were_read_are_not_passed_over_in_silence(
    spark: SparkSession, growing: Path, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path, growing)
    append(growing, batch(0, 10))
    sink.run()
    append(growing, batch(10, 10), base=10)
    append(growing, batch(20, 5), base=20)
    for base in (0, 10):
        (growing / format_segment_file(base)).unlink()
    with pytest.raises(Exception, match="offsets 10 to 19 are gone"):
        sink.run()
    Sink(spark, tmp_path, growing, onDamage="skip").run()
    assert sink.offsets() == [*range(10), *range(20, 25)]


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_log_that_ends_before_what_was_read_is_not_waited_for_in_silence(
    growing: Path, restarted: bool, isolation: str
) -> None:
    """A topic that was deleted and made again begins at 0, as one that a broker has cut may."""

    def reader(**more: str) -> SegmentStreamReader:
        options = parse_options({"path": str(growing), "isolation": isolation, **more})
        return SegmentStreamReader(options, RECORD)

    append(growing, batch(0, 10) + batch(10, 10))
    following = reader()
    read = following.latestOffset({}, ReadAllAvailable())
    assert read == {str(growing): 20}
    (growing / LOG).write_bytes(batch(0, 5))
    again = reader() if restarted else following
    with pytest.raises(BadData, match="ends before offset 5, and was read up to 20 already"):
        again.latestOffset(read, ReadAllAvailable())
    skipping = reader(onDamage="skip")
    assert skipping.latestOffset(read, ReadAllAvailable()) == read
    append(growing, batch(5, 20))
    assert skipping.latestOffset(read, ReadAllAvailable()) == {str(growing): 25}


@pytest.mark.soak
def test_a_killed_query_goes_on_without_loss_or_repetition(
    spark: SparkSession, growing: Path, tmp_path: Path
) -> None:
    """The query runs in a process of its own, killed at any moment, while a log grows."""
    dice = random.Random(7)
    written = 0

    def write_some() -> None:
        nonlocal written
        for _ in range(dice.randrange(1, 6)):
            count = dice.randrange(1, 30)
            base = written - written % 100  # a new segment every hundred records or so
            bases = [int(log.stem) for log in growing.glob("*.log")] or [0]
            base = written if base > max(bases) else max(bases)
            append(growing, batch(written, count), base=base)
            written += count

    for _ in range(20 if SOAK else 1):
        write_some()
        query = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.segments.follow", str(growing), str(tmp_path)],
            start_new_session=True,  # Spark's JVM goes with it
        )
        try:
            wait_until(partial(more_commits, tmp_path, commits(tmp_path)), "a micro-batch", 120)
            until = time.monotonic() + dice.uniform(0, 4)
            while time.monotonic() < until:
                write_some()
                time.sleep(0.1)
        finally:
            os.killpg(query.pid, signal.SIGKILL)
            query.wait()
    write_some()
    sink = Sink(spark, tmp_path, growing)
    sink.run()
    assert sink.offsets() == list(range(written))

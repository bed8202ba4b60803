"""What a consumer is shown by a live broker, `kafka_segments` reads from the broker's files."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.driver import Driver, wait_until
from tests.oracle.java import run
from tests.oracle.kafka import KraftCluster
from tests.oracle.lines import Json
from tests.spark.segments.rows import instant, plain, read

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = ("live-codecs", "live-transactions", "live-compacted", "live-append-time")
COLUMNS = (
    "topic string, partition int, offset long, timestamp timestamp, timestamp_type string, "
    "leader_epoch int, key binary, value binary, headers array<struct<key string, value binary>>"
)


def some(count: int, note: str) -> list[Json]:
    return [
        {
            "k": None if i % 5 == 4 else f"key-{i % 7}",
            "v": None if i % 11 == 10 else f"{note} {i} " * (1 + i % 9),
            "h": [["trace", f"{i:04x}"], ["none", None]] if i % 3 == 0 else [],
        }
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def broker(kafka_4_3: KraftCluster, driver_4_3: Driver) -> Iterator[KraftCluster]:
    """All codecs; transactions committed, aborted, interleaved and open; compaction."""
    driver = driver_4_3
    # Smaller than any batch or two: many segments.
    small: dict[str, Json] = {"internal.segment.bytes": "2000"}
    driver.do("createTopic", name="live-codecs", configs=small)
    for codec in CODECS:
        settings = {"compression.type": codec, "linger.ms": "50", "batch.size": "2000"}
        driver.produce("live-codecs", some(60, codec), producer=codec, settings=settings)
        driver.do("closeProducer", producer=codec)
    driver.do("createTopic", name="live-transactions", partitions=2, configs=small)
    for n, codec in enumerate(CODECS):
        name = f"live-tx-{codec}"
        settings = {"transactional.id": name, "compression.type": codec, "linger.ms": "50"}
        for i in range(4):
            driver.do("begin", producer=name, settings=dict(settings))
            for partition in (0, 1):
                driver.produce(
                    "live-transactions", some(9, name), partition=partition, producer=name
                )
            driver.do("abort" if (n + i) % 3 == 1 else "commit", producer=name)
    # Two at once, and records outside of any; the later transaction stays open.
    for name in ("live-tx-none", "live-tx-zstd"):
        driver.do("begin", producer=name)
        driver.produce("live-transactions", some(5, "open"), producer=name)
        driver.produce("live-transactions", some(3, "outside"), producer="outside")
    driver.do("abort", producer="live-tx-none")
    compaction: dict[str, Json] = {**small, "cleanup.policy": "compact"}
    driver.do("createTopic", name="live-compacted", configs=compaction)
    keyed: list[Json] = [{"k": f"key-{i % 7}", "v": f"{i}" * 30} for i in range(80)]
    driver.produce("live-compacted", keyed, producer="compacted", together=False)
    append_time: dict[str, Json] = {"message.timestamp.type": "LogAppendTime"}
    driver.do("createTopic", name="live-append-time", configs=append_time)
    driver.produce("live-append-time", some(20, "append"), producer="append")
    checkpoint = kafka_4_3.data(1) / "cleaner-offset-checkpoint"
    # Otherwise the cleaner could come between the consumer and us.
    wait_until(lambda: "live-compacted 0" in checkpoint.read_text(), "the log cleaner", 90)
    yield kafka_4_3
    driver.do("abort", producer="live-tx-zstd")


def consumed(broker: KraftCluster, isolation: str) -> list[dict[str, Any]]:
    text = run("Consumed", [broker.bootstrap, isolation, *TOPICS], ours=True)
    rows = [
        {
            "topic": each["topic"],
            "partition": each["partition"],
            "offset": each["offset"],
            "timestamp": instant(each["timestamp"]),
            "timestamp_type": each["timestampType"],
            "leader_epoch": each["leaderEpoch"],
            "key": _bytes(each["key"]),
            "value": _bytes(each["value"]),
            "headers": [(key, _bytes(value)) for key, value in each["headers"]],
        }
        for each in map(json.loads, text.splitlines())
    ]
    return in_order(rows)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def test_committed_records_are_those_that_a_consumer_is_shown(
    spark: SparkSession, broker: KraftCluster
) -> None:
    expected = consumed(broker, "read_committed")
    found = read(
        spark,
        broker.data(1),
        schema=COLUMNS,
        topics="live-*",
        isolation="read_committed",
        splitBytes=3000,
    )
    assert in_order(plain(found)) == expected
    assert {row["topic"] for row in expected} == set(TOPICS)


def test_uncommitted_records_are_all_that_are_not_control(
    spark: SparkSession, broker: KraftCluster
) -> None:
    expected = consumed(broker, "read_uncommitted")
    everything = read(spark, broker.data(1), topics="live-*").where("not is_control")
    names = [column.split()[0] for column in COLUMNS.split(", ") if " " in column]
    columns = [name for name in everything.columns if name in {*names, "headers"}]
    assert in_order(plain(everything.select(*columns))) == expected
    assert len(expected) > len(consumed(broker, "read_committed"))

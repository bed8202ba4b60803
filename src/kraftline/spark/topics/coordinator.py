"""The records of `__consumer_offsets`, each once, however many copies of them there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kraftline.spark.inputs import InputFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "file string, partition int, offset bigint, leader_epoch int, timestamp timestamp, "
    "key_type string, key_payload string, value_payload string, group string, "
    "offset_topic string, offset_partition int, committed_offset bigint, "
    "committed_leader_epoch int, metadata string, commit_timestamp timestamp"
)


def coordinator_records(spark: SparkSession, segments: Sequence[InputFile]) -> DataFrame:
    """Records with their cluster, as a consumer would see them: no aborted transactions.

    Where copies differ at an offset, the one of the higher leader epoch counts.
    """
    owners = spark.createDataFrame(
        [(file.path, file.cluster_id) for file in segments], "file string, cluster_id string"
    )
    found = (
        spark.read.format("kafka_segments")
        .schema(_COLUMNS)
        .option("decode", "offsets")
        .option("isolation", "read_committed")
        .option("onDamage", "skip")
        .option("paths", json.dumps([file.path for file in segments]))
        .load()
        .where("group IS NOT NULL")
        .join(F.broadcast(owners), "file")
    )
    copies = Window.partitionBy("cluster_id", "partition", "offset").orderBy(
        F.desc("leader_epoch"), "file"
    )
    return found.withColumn("copy", F.row_number().over(copies)).where("copy = 1").drop("copy")

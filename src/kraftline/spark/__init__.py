"""Kafka's files in Spark: data sources, and the jobs that build a lake of history from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make Kraftline's sources known to a session: `spark.read.format("kafka_segments")`, and
    `"kraft_metadata"`.

    They take filters, which Spark hands to a Python source only if it is told to.
    """
    from kraftline.spark.sources.metadata import KraftMetadata
    from kraftline.spark.sources.segments import KafkaSegments

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(KafkaSegments)
    spark.dataSource.register(KraftMetadata)

"""A Spark session of this machine, set up the way these jobs want it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from kraftline.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.log.level": "ERROR",
}


def local_session(
    name: str = "kraftline", *, cores: int | None = None, memory: str = "2g", **settings: str
) -> SparkSession:
    """A session on this machine alone; `settings` go over the usual ones (dots as in Spark)."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = str(java_home())
    from pyspark.sql import SparkSession

    count = cores or len(os.sched_getaffinity(0))
    chosen = {
        **SETTINGS,
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(2 * count),
        "spark.default.parallelism": str(2 * count),
        **settings,
    }
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()

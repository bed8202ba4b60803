"""The next producer id that the controller will hand out, and who got the last ones."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftline.spark.history.staged import Staged, united


def producer_id_events(staged: Staged) -> DataFrame:
    """Events with the columns of the table, and `there`."""
    r = F.col("r")
    columns = ("next_producer_id", "broker", "broker_epoch")
    return united(
        staged.of(
            "PRODUCER_IDS_RECORD",
            next_producer_id=r["next_producer_id"],
            broker=r["broker_id"],
            broker_epoch=r["broker_epoch"],
        ),
        staged.opened("producer_ids", **{name: F.col(name) for name in columns}),
    ).withColumn("there", F.lit(True))

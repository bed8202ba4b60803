"""The next producer id that the controller will hand out, and who got the last ones."""

from __future__ import annotations

from pyspark.sql import functions as F

from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import fields


def producer_ids() -> Said:
    block = fields("PRODUCER_IDS_RECORD")
    columns = {
        "next_producer_id": block["next_producer_id"],
        "broker": block["broker_id"],
        "broker_epoch": block["broker_epoch"],
    }
    return {"PRODUCER_IDS_RECORD": (F.lit(True), columns)}

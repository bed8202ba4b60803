"""Finalized features and their levels. `kraft.version` lives in control records, not here."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftline.metadata.features import KRAFT_VERSION, METADATA_VERSION, MINIMUM, VERSIONS
from kraftline.spark.history.staged import Staged, united


def feature_events(staged: Staged) -> DataFrame:
    """Events with `feature`, `level`, `there`; and `taken`: whether the level is one that a node
    would take. What is not taken is told of, and changes nothing."""
    r = F.col("r")
    known = [version.level for version in VERSIONS if version >= MINIMUM]
    name = F.col("feature")
    taken = (name != METADATA_VERSION) | F.col("level").isin(known)
    return united(
        staged.of("FEATURE_LEVEL_RECORD", feature=r["name"], level=r["feature_level"]),
        staged.opened("features", feature=F.col("feature"), level=F.col("level")),
    ).withColumns({"there": F.col("level") != 0, "taken": taken & (name != KRAFT_VERSION)})

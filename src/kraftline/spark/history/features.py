"""Finalized features and their levels. `kraft.version` lives in control records, not here."""

from __future__ import annotations

from pyspark.sql import functions as F

from kraftline.metadata.features import KRAFT_VERSION, METADATA_VERSION, MINIMUM, VERSIONS
from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import fields


def features() -> Said:
    feature = fields("FEATURE_LEVEL_RECORD")
    name, level = feature["name"], feature["feature_level"]
    known = [version.level for version in VERSIONS if version >= MINIMUM]
    taken = (name != KRAFT_VERSION) & ((name != METADATA_VERSION) | level.isin(known))
    # Null: no node would take it, and all stays as it was.
    there = F.when(taken, level != 0)
    return {"FEATURE_LEVEL_RECORD": (there, {"feature": name, "level": level})}

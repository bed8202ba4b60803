"""`changes`: one row for each change that a person would name, with its cause where one is known.

The same that `kraftline changes` prints for programs, by the same words. What is still open is
not told of: a transaction without an end may get one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kraftline.spark.history.changes import rare
from kraftline.spark.history.changes.causes import Causes
from kraftline.spark.history.changes.columns import TOLD, as_changes
from kraftline.spark.history.changes.found import Found
from kraftline.spark.history.changes.gaps import over_gaps
from kraftline.spark.history.changes.in_words import TOLD_SCHEMA, in_words
from kraftline.spark.history.changes.partitions import leaders_and_isrs
from kraftline.spark.history.staged import Staged, united

__all__ = ["Found", "changes"]


def changes(staged: Staged, found: Found) -> DataFrame:
    """The table `changes`."""
    from pyspark.sql.pandas.types import from_arrow_schema

    others = united(
        rare.things(found.entities),
        rare.features(staged),
        *rare.topics(found),
        rare.partitions_changed(found.steps),
        rare.log(staged),
        over_gaps(staged, found),
    )
    said = others.mapInArrow(in_words, from_arrow_schema(TOLD_SCHEMA)).select(*TOLD)
    hot = leaders_and_isrs(found.steps, Causes(staged, found.broker_events))
    return as_changes(united(hot, said), staged.legs)

"""`changes`: one row for each change that a person would name, with its cause where one is known.

The same that `kraftline changes` prints for programs, by the same words. What is still open is
not told of: a transaction without an end may get one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from kraftline.spark.history.changes import rare
from kraftline.spark.history.changes.causes import Causes
from kraftline.spark.history.changes.columns import TOLD, as_changes
from kraftline.spark.history.changes.gaps import over_gaps
from kraftline.spark.history.changes.in_words import TOLD_SCHEMA, in_words
from kraftline.spark.history.changes.partitions import leaders_and_isrs
from kraftline.spark.history.staged import Staged, united


def changes(
    staged: Staged,
    steps: DataFrame,
    lives: DataFrame,
    events: Mapping[str, DataFrame],
    made: Mapping[str, DataFrame],
) -> DataFrame:
    """The table `changes`, from the events of every table, the steps of partitions, and (where the
    log has gaps) the tables that were made of them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    others = united(
        rare.brokers(events["brokers"]),
        rare.controllers(events["controllers"]),
        rare.configs(events["configs"], lives),
        rare.acls(events["acls"]),
        rare.quotas(events["client_quotas"]),
        rare.scram(events["scram"]),
        rare.features(events["features"]),
        rare.tokens(events["delegation_tokens"]),
        rare.topics_created(lives, steps, events["configs"]),
        rare.topics_deleted(lives, steps),
        rare.partitions_added(steps),
        rare.partitions_changed(steps),
        rare.log(staged),
        over_gaps(staged, made),
    )
    said = others.mapInArrow(in_words, from_arrow_schema(TOLD_SCHEMA)).select(*TOLD)
    hot = leaders_and_isrs(steps, Causes(staged, events["brokers"]))
    return as_changes(united(hot, said), staged.legs)

"""Tables that come of topic segments: sizes, consumer groups, and how far behind they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kraftline.lake.tables import GROUP_OFFSETS, GROUPS, TOPIC_SIZES
from kraftline.spark.inputs import InputFile, InputKind
from kraftline.spark.survey import SurveyRow
from kraftline.spark.topics.coordinator import coordinator_records
from kraftline.spark.topics.groups import groups
from kraftline.spark.topics.lag import group_offsets, log_ends
from kraftline.spark.topics.sizes import topic_sizes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS_TOPIC = "__consumer_offsets"


def topic_tables(
    spark: SparkSession,
    files: Sequence[InputFile],
    surveyed: Mapping[str, Sequence[SurveyRow]],
) -> dict[str, DataFrame]:
    """All rows of these tables, from all topic segments of the clusters that are being built."""
    segments = [file for file in files if file.kind is InputKind.SEGMENT and not file.is_metadata]
    if not segments:
        return {}
    tables = {TOPIC_SIZES.name: topic_sizes(spark, segments, surveyed)}
    coordinated = [file for file in segments if file.topic == OFFSETS_TOPIC and file.size]
    if coordinated:
        records = coordinator_records(spark, coordinated)
        consumed = [file for file in segments if file.topic != OFFSETS_TOPIC and file.size]
        tables[GROUPS.name] = groups(records)
        tables[GROUP_OFFSETS.name] = group_offsets(records, log_ends(spark, consumed))
    return tables

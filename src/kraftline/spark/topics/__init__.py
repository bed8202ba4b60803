"""Tables that come of topic segments: sizes, consumer groups, and how far behind they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.lake.tables import GROUP_OFFSETS, GROUPS, TOPIC_SIZES
from kraftline.spark.inputs import InputFile, InputKind
from kraftline.spark.survey import SurveyRow
from kraftline.spark.topics.coordinator import coordinator_records
from kraftline.spark.topics.groups import groups
from kraftline.spark.topics.lag import group_offsets
from kraftline.spark.topics.sizes import topic_sizes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS_TOPIC: Final = "__consumer_offsets"


class TopicsKnown(Struct, frozen=True):
    """What a lake says of the clusters that are being built: segments, and rows of groups. Kafka
    deletes and compacts what these came of; a history keeps it."""

    sizes: pa.Table
    groups: DataFrame | None = None
    group_offsets: DataFrame | None = None

    def reached(self, spark: SparkSession) -> DataFrame:
        """How far the copies of each partition of the offsets topic went."""
        mine = self.sizes.filter(pc.equal(self.sizes.column("topic"), OFFSETS_TOPIC))
        ends = mine.group_by(["cluster_id", "partition"]).aggregate([("end_offset", "max")])
        return spark.createDataFrame(ends.rename_columns(["cluster_id", "partition", "end_offset"]))


NOTHING_KNOWN: Final = TopicsKnown(TOPIC_SIZES.columns.empty_table())


def topic_tables(
    spark: SparkSession,
    files: Sequence[InputFile],
    surveyed: Mapping[str, Sequence[SurveyRow]],
    known: TopicsKnown = NOTHING_KNOWN,
    looked_at: Collection[str] = (),
) -> dict[str, DataFrame]:
    """All rows of these tables, from topic segments, all that are in the places that were
    `looked_at`, and from what is `known` of those that are gone or elsewhere."""
    segments = [file for file in files if file.kind is InputKind.SEGMENT and not file.is_metadata]
    if not segments:
        return {}
    tables = {TOPIC_SIZES.name: topic_sizes(spark, segments, surveyed, known.sizes, looked_at)}
    coordinated = [file for file in segments if file.topic == OFFSETS_TOPIC and file.size]
    if coordinated:
        records = coordinator_records(spark, coordinated)
        consumed = [file for file in segments if file.topic != OFFSETS_TOPIC and file.size]
        tables[GROUPS.name] = groups(records, known.groups, known.reached(spark))
        tables[GROUP_OFFSETS.name] = group_offsets(
            spark, records, known.group_offsets, consumed, surveyed
        )
    return tables

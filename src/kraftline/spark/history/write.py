"""The history tables of a build, in two steps of tasks: things first, then partitions, which want
to know of things. Tasks write the files of tables themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftline.lake.files import Added
from kraftline.spark.history.exchange import OpenFile, RecordFile
from kraftline.spark.history.moments import Leg
from kraftline.spark.history.out import added_by_table
from kraftline.spark.history.partition_tasks import write_partitions
from kraftline.spark.history.thing_tasks import write_things
from kraftline.spark.history.things import OPENED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_history(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: pa.Table,
    opened: Sequence[OpenFile] = (),
) -> dict[str, list[Added]]:
    """Write every history table, `health` and `changes` for the clusters in `legs`; the files of
    each, which nobody sees yet.

    `records` are newly staged; of a leg that goes on they must begin with the Begin of a
    transaction that was open when it was built last. `opened` rows come out again, closed or still
    open.
    """
    by_cluster = _legs(legs)
    found = write_things(spark, root, records, by_cluster, opened)
    added = added_by_table(found.wrote)
    written = write_partitions(spark, root, records, found, opened)
    for table, files in added_by_table(written).items():
        added.setdefault(table, []).extend(files)
    return {name: added.get(name, []) for name in (*OPENED, "partitions", "changes")}


def _legs(legs: pa.Table) -> dict[str, list[Leg]]:
    found: dict[str, list[Leg]] = {}
    times = legs.column("next_base_time").cast(pa.int64()).to_pylist()
    for row, time in zip(legs.to_pylist(), times, strict=True):
        leg = Leg(
            row["leg"],
            row["next_base_offset"],
            time,
            row["end_offset"],
            row["committed_to"],
            row["continued"],
        )
        found.setdefault(row["cluster_id"], []).append(leg)
    return {name: sorted(each, key=lambda leg: leg.leg) for name, each in found.items()}

"""Tables of a lake as DataFrames, read by Spark's own Parquet reader, and small rows made one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftline.lake.delta import files_of
from kraftline.lake.lake import Lake
from kraftline.lake.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_files(
    spark: SparkSession, folder: str, paths: Iterable[str], columns: pa.Schema
) -> DataFrame | None:
    """Files of a table, by their paths in its folder; None if there are none. The columns of
    partitions come from the paths, so that a filter on them leaves files out."""
    from pyspark.sql.pandas.types import from_arrow_schema

    whole = [f"{folder}/{path}" for path in paths]
    if not whole:
        return None
    # Listing many files in a job of its own takes longer than listing them.
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", "100000")
    reader = spark.read.schema(from_arrow_schema(columns)).option("basePath", folder)
    return reader.parquet(*whole).select(*columns.names)


def read_pinned(
    spark: SparkSession,
    lake: Lake,
    table: Table,
    partitions: Sequence[Mapping[str, Sequence[str]]],
) -> DataFrame | None:
    """The rows of some partitions as the lake's build has them; None if there are none."""
    if table.name not in lake.build.versions:
        return None
    found = files_of(lake.table(table.name)).values()
    paths = [file.path for file in found if file.matches(partitions)]
    return read_files(spark, f"{lake.root}/{table.name}", paths, table.columns)


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A few rows of the driver's."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(rows, from_arrow_schema(rows.schema))

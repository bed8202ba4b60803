"""Everything but partitions in one pass: an event of any table is a row of one shape.

They are few, and a pass of their own for each table would cost more than what is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kraftline.lake.tables import TABLES
from kraftline.spark.history.staged import MOMENT, Staged, united
from kraftline.spark.history.validity import (
    ORDER,
    VALIDITY,
    as_rows,
    last_at_offset,
    with_leg_ends,
)

# For every record type: whether the thing is there after it, and the columns of its table.
Said: TypeAlias = Mapping[str, tuple[Column, Mapping[str, Column]]]

_ENTITY: Final = ("cluster_id", "leg", "table", "key")


def said_events(staged: Staged, said: Mapping[str, Said]) -> DataFrame:
    """Events of tables whose records say all there is to say, for `entities`."""
    records = {
        record_type: {
            "table": F.lit(table),
            "there": there,
            "silent": F.lit(False),
            table: row_of(table, columns),
        }
        for table, types in said.items()
        for record_type, (there, columns) in types.items()
    }
    opened = (
        staged.opened(
            table,
            {
                "table": F.lit(table),
                "there": F.lit(True),
                "silent": F.lit(False),
                table: row_of(table, {name: F.col(name) for name in own_columns(table)}),
            },
        )
        for table in said
    )
    return united(staged.events(records), *opened)


def shaped(table: str, events: DataFrame) -> DataFrame:
    """Events that have the columns of their table, `there` and `silent`, for `entities`."""
    row = row_of(table, {name: F.col(name) for name in own_columns(table)})
    return events.select(*MOMENT, F.lit(table).alias("table"), "there", "silent", row.alias(table))


def entities(*events: DataFrame) -> DataFrame:
    """Events of all tables: MOMENT, `table`, `key` (a text), `silent` (it is no change that is
    told of by itself), `state` (a struct of tables, null where the thing is not there any more),
    `was` (the state before) and `next_at` (where the next event of the thing took effect)."""
    # Null is what no node would take: all stays as it was.
    whole = united(*events).where(F.col("there").isNotNull())
    entity = Window.partitionBy(*_ENTITY).orderBy(*ORDER)
    tables = [name for name in whole.columns if name in TABLES]
    state = F.when(F.col("there"), F.struct(*tables))
    return whole.select(
        *MOMENT, "table", _key(tables).alias("key"), "silent", state.alias("state")
    ).withColumns({"was": F.lag("state").over(entity), "next_at": F.lead("at_offset").over(entity)})


def entity_rows(found: DataFrame, legs: DataFrame) -> DataFrame:
    """What was true from when to when: MOMENT, `table`, `key`, `state`, and when it ended.

    What is kept of SCRAM credentials does not tell whether they are others: they count as such.
    """
    entity = Window.partitionBy(*_ENTITY).orderBy(*ORDER)
    counted = found.where(last_at_offset(F.col("next_at")))
    counted = counted.withColumn("was", F.lag("state").over(entity))
    there = F.col("state").isNotNull()
    changed = ~F.col("state").eqNullSafe(F.col("was")) | ((F.col("table") == "scram") & there)
    ended = (
        counted.where(changed)
        .withColumns(
            {
                "valid_to_offset": F.lead("at_offset").over(entity),
                "valid_to_time": F.lead("at_time").over(entity),
            }
        )
        .where(there)
    )
    return with_leg_ends(ended.drop("was", "next_at", "silent"), legs)


def table_of(rows: DataFrame, name: str) -> DataFrame:
    """The rows of one history table."""
    return as_rows(unpacked(rows, name), TABLES[name])


def unpacked(rows: DataFrame, name: str) -> DataFrame:
    """The rows of one table with its own columns beside what all rows have."""
    own = [F.col("state")[name][column].alias(column) for column in own_columns(name)]
    return rows.where(F.col("table") == name).select(
        *(column for column in rows.columns if column not in ("table", "key", "state")), *own
    )


def own_columns(table: str) -> list[str]:
    """The columns of a history table that say what was true, without when."""
    left_out = ("cluster_id", *VALIDITY)
    return [name for name in TABLES[table].columns.names if name not in left_out]


def row_of(table: str, columns: Mapping[str, Column]) -> Column:
    """A struct with a table's own columns, in its types; those that are not given are null."""
    types = from_arrow_schema(TABLES[table].columns)
    return F.struct(
        *(
            columns.get(name, F.lit(None)).cast(types[name].dataType).alias(name)
            for name in own_columns(table)
        )
    )


def _key(tables: list[str]) -> Column:
    """What names a thing within its table, as text."""
    found = F.when(F.lit(False), F.lit(""))
    for table in tables:
        keys = [F.col(table)[name].alias(name) for name in TABLES[table].keys]
        text = F.to_json(F.struct(*keys)) if keys else F.lit("")
        found = found.when(F.col("table") == table, text)
    return found

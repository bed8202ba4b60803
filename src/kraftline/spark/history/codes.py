"""Kafka's numbers as the names that a lake's tables have, in a column."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F


def name_of(code: Column, names: Mapping[int, str]) -> Column:
    found = F.when(code.isNull(), None)
    for number, name in names.items():
        found = found.when(code == number, F.lit(name))
    return found.otherwise(code.cast("string"))

"""What changes are told from: the events and rows of a build."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame


class Found(NamedTuple):
    """As `entities`, `entity_rows`, `partition_steps`, `lives` and the events of tables have
    them."""

    entities: DataFrame
    rows: DataFrame
    steps: DataFrame
    lives: DataFrame
    broker_events: DataFrame
    config_events: DataFrame

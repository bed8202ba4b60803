"""Replay in Spark: window functions over staged records make the tables of history."""

from __future__ import annotations

from kraftline.spark.history.every import history_tables

__all__ = ["history_tables"]

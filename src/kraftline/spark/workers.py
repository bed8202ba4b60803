"""Spark's Python workers. Each is kept for the tasks to come, and collects garbage between two."""

from __future__ import annotations

import gc
import sys

_modules = 0


def settle() -> None:
    """Let the collector pass over what modules have brought, at a task's end: looking through that
    of pyarrow, pyspark and ourselves takes a worker 40 ms, more than many a task."""
    global _modules
    if len(sys.modules) != _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)

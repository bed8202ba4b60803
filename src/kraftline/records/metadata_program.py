"""The column program of all metadata record types, compiled once."""

from __future__ import annotations

from functools import cache

from kraftline.schema.columns import ColumnProgram, compile_columns
from kraftline.schema.metadata import TYPE_NAMES, record_class


@cache
def metadata_program() -> ColumnProgram:
    return compile_columns({name: record_class(key) for key, name in TYPE_NAMES.items()})

"""A row of a survey: what there is in part of a file."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from msgspec import Struct

from kraftline.spark.inputs import InputFile

RUN: Final = "run"
DAMAGE: Final = "damage"
SNAPSHOT: Final = "snapshot"
END: Final = "end"


class SurveyRow(Struct, frozen=True, kw_only=True):
    """Positions and offsets are half open; times are in ms.

    run: sound batches of one leader epoch, back to back; `first_time` is of the first of them,
    `max_time` the highest; `last_position` and `last_crc` are of the last, by which a file is
    known again. damage: bytes that cannot be read, and why. snapshot: a whole one, `to_offset` is
    its end offset and `max_time` that of the last record it contains. end: how far was read.
    """

    file: str
    what: str
    from_position: int = 0
    to_position: int = 0
    from_offset: int | None = None
    to_offset: int | None = None
    epoch: int = -1
    records: int = 0
    batches: int = 0
    first_time: int = -1
    max_time: int = -1
    last_position: int = -1
    last_crc: int = -1
    reason: str | None = None


SCHEMA: Final = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("what", pa.string()),
        pa.field("from_position", pa.int64()),
        pa.field("to_position", pa.int64()),
        pa.field("from_offset", pa.int64()),
        pa.field("to_offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("records", pa.int64()),
        pa.field("batches", pa.int64()),
        pa.field("first_time", pa.int64()),
        pa.field("max_time", pa.int64()),
        pa.field("last_position", pa.int64()),
        pa.field("last_crc", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)


class Part(Struct, frozen=True):
    """Part of a file to look at; `last` is how it is known that what is before did not change.

    `cuts` are offsets at which a run must end and another begin.
    """

    file: InputFile
    start: int
    end: int
    last: SurveyRow | None = None
    cuts: tuple[int, ...] = ()

"""What a plan says: pieces of files to read, legs, what is covered and what is put aside."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kraftline.spark.reached import Reached
from kraftline.spark.survey_rows import SurveyRow

LAKE: Final = ""  # the file of a piece that is read back from the table `records`


class Piece(Struct, frozen=True, kw_only=True):
    """Part of a file to decode. Only the offsets from `from_offset` up to `to_offset` are wanted.

    `time` is the log's time before it: the running maximum so far. `leg` is None where no state
    is known to start from. Of a snapshot all is wanted, and `to_offset` is its end offset.
    """

    cluster_id: str
    leg: int | None
    file: str
    node: int | None = None
    in_snapshot: bool = False
    from_position: int = 0
    to_position: int = 0
    from_offset: int
    to_offset: int
    epoch: int
    time: int
    committed_to: int


class Leg(Struct, frozen=True, kw_only=True):
    """`base_offset` is the first offset that can be answered for, `end_offset` the one after the
    last; times in ms. `continued`: the lake has its beginning already."""

    leg: int
    base_offset: int
    base_time: int
    end_offset: int
    end_time: int
    continued: bool


class Coverage(Struct, frozen=True, kw_only=True):
    """A row of the table `coverage`, times in ms (-1: not known)."""

    leg: int | None
    how: str
    from_offset: int
    to_offset: int
    from_time: int = -1
    to_time: int = -1
    source: str | None = None


class Quarantined(Struct, frozen=True, kw_only=True):
    """A row of the table `quarantine`."""

    file: str
    kind: str
    from_position: int | None
    to_position: int | None
    from_offset: int | None
    to_offset: int | None
    reason: str


class ClusterPlan(Struct, frozen=True, kw_only=True):
    """`anew`: this does not extend what the lake has, so all of the cluster is made again.

    `cuts` are runs that must be surveyed again, cut at these offsets, before this can be trusted.
    """

    cluster_id: str
    legs: tuple[Leg, ...]
    pieces: tuple[Piece, ...]
    coverage: tuple[Coverage, ...]
    quarantine: tuple[Quarantined, ...]
    committed_to: int
    anew: bool
    reached: Reached
    cuts: dict[SurveyRow, tuple[int, ...]]

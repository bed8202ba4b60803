"""The table `builds`: a row per build that can be read, each pinning a version of every table.

It is committed last, so a build shows all at once or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kraftline.errors import KraftlineError
from kraftline.lake.columns import micros, rows_in
from kraftline.lake.tables import LAYOUT, TIME

NAME: Final = "builds"
COLUMNS: Final = pa.schema(
    [
        pa.field("build", pa.int64()),
        pa.field("time", TIME),
        pa.field("kraftline", pa.string()),
        pa.field("layout", pa.int32()),
        pa.field("versions", pa.map_(pa.string(), pa.int64())),
        pa.field("clusters", pa.map_(pa.string(), pa.string())),
        pa.field("inputs", pa.list_(pa.string())),
    ]
)
_LAYOUT = "layout "  # what the table's description begins with


class Build(msgspec.Struct, frozen=True):
    """`versions` are of the tables, by name; `clusters` holds what the runner wants to find again,
    a text per cluster."""

    build: int
    time: datetime
    kraftline: str
    layout: int
    versions: dict[str, int]
    clusters: dict[str, str]
    inputs: list[str]


def description() -> str:
    return f"{_LAYOUT}{LAYOUT}"


def open_builds(root: str) -> DeltaTable | None:
    """The table of a lake's builds; None where there is no lake. KraftlineError: another layout."""
    try:
        table = DeltaTable(f"{root}/{NAME}")
    except TableNotFoundError:
        return None
    said = table.metadata().description or ""
    if not said.startswith(_LAYOUT):
        return None
    layout = said.removeprefix(_LAYOUT)
    if layout != str(LAYOUT):
        raise KraftlineError(
            f"{root}: a lake of layout {layout}; this release reads layout {LAYOUT}. "
            "Build it anew into another folder, or use the release that made it"
        )
    return table


def read_builds(table: DeltaTable) -> list[Build]:
    """The builds that can be read, the newest last."""
    rows = rows_in(table.scan())
    said = rows.drop_columns(["time"]).to_pylist(maps_as_pydicts="strict")
    found = [
        Build(time=datetime.fromtimestamp((time or 0) / 1_000_000, UTC), **row)
        for row, time in zip(said, micros(rows["time"]), strict=True)
    ]
    return sorted(found, key=lambda build: build.build)


def as_rows(builds: Sequence[Build]) -> pa.Table:
    return pa.Table.from_pylist([msgspec.structs.asdict(build) for build in builds], COLUMNS)

"""What this package wants of Delta: a table's files, one commit that adds and removes, creation."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    RemoveAction,
    create_table_with_add_actions,
)

from kraftline.errors import KraftlineError
from kraftline.lake.columns import rows_in
from kraftline.lake.files import Added

# A checkpoint often, so that opening a table reads few files. Delta would delete its log by age,
# and with it a version that a build still pins: sweeping does that instead.
_SETTINGS: Final = {
    "delta.checkpointInterval": "20",
    "delta.enableExpiredLogCleanup": "false",
}
# Nobody else may have committed since: their files would come in with ours.
_ALONE: Final = CommitProperties(max_commit_retries=0)
_OF_FILES: Final = ("path", "size_bytes", "partition")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class File(msgspec.Struct, frozen=True):
    """A file that a version of a table names; `path` is relative to the table's folder."""

    path: str
    size: int
    partition: dict[str, str | None]

    def matches(self, chosen: Iterable[Mapping[str, Sequence[str]]]) -> bool:
        """Is it in a partition that one of the mappings names?"""
        return any(
            all(self.partition.get(name) in values for name, values in each.items())
            for each in chosen
        )


def open_table(folder: str, version: int | None = None) -> DeltaTable | None:
    """A table at a version, else at its newest; None where there is none."""
    try:
        return DeltaTable(folder, version=version)
    except TableNotFoundError:
        return None


def create(
    folder: str,
    schema: pa.Schema,
    partition_by: Sequence[str],
    added: Sequence[Added] = (),
    *,
    name: str | None = None,
    description: str | None = None,
) -> None:
    """Make a table; one that is there becomes this one, with nothing of what it had."""
    create_table_with_add_actions(
        folder,
        Schema.from_arrow(schema),
        [_add(each) for each in added],
        mode="overwrite",
        partition_by=list(partition_by),
        name=name,
        description=description,
        configuration=_SETTINGS,
    )


def files_of(table: DeltaTable) -> dict[str, File]:
    actions = table.get_add_actions()
    wanted = [name for name in _OF_FILES if name in actions.column_names]  # bounds are many more
    rows = rows_in(actions.select(wanted)).to_pylist()
    found = [
        File(
            unquote(row["path"]),
            row["size_bytes"],
            {
                name: None if value is None else str(value)
                for name, value in (row.get("partition") or {}).items()
            },
        )
        for row in rows
    ]
    return {file.path: file for file in found}


def change(
    table: DeltaTable, added: Sequence[Added], removed: Iterable[File], *, same_rows: bool = False
) -> int:
    """One commit on top of the version that the table was opened at; the new version. `same_rows`:
    files are written anew and what they say stays."""
    now = _now()
    gone = [
        RemoveAction(file.path, not same_rows, now, file.size, dict(file.partition))
        for file in removed
    ]
    table.create_write_transaction(
        [*(_add(each, same_rows=same_rows) for each in added), *gone],
        "append",
        table.schema(),
        list(table.metadata().partition_columns),
        commit_properties=_ALONE,
    )
    table.update_incremental()
    return int(table.version())


def _add(added: Added, *, same_rows: bool = False) -> AddAction:
    stats = added.stats or msgspec.json.encode({"numRecords": added.rows}).decode()
    return AddAction(added.path, added.size, added.partition, _now(), not same_rows, stats)


def _now() -> int:
    return round(time.time() * 1000)


@contextmanager
def telling(root: str) -> Iterator[None]:
    """What goes wrong with writing, in words."""
    try:
        yield
    except CommitFailedError:
        raise KraftlineError(
            f"{root}: another run has written to this lake meanwhile; nothing of this one shows. "
            "Run it again"
        ) from None
    except DeltaError as error:
        raise KraftlineError(_unwritten(root, error)) from error
    except OSError as error:
        raise KraftlineError(_unwritten(root, error)) from error


def _unwritten(root: str, error: Exception) -> str:
    return f"{root}: cannot be written: {in_a_line(error)}. The lake is as it was"


def in_a_line(error: Exception) -> str:
    """What the engine or the system says was wrong, without its lines and colours."""
    said = error.strerror if isinstance(error, OSError) else None
    return " ".join(_COLOURS.sub("", said or str(error)).split()).rstrip(".")

"""Writing to a lake: table after table is committed, and last `builds`, which makes all visible.

Every commit builds on what the last build pinned. Whatever a crashed run committed behind that is
taken back first, in the table's own log; readers, who read pinned versions, never see either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, Schema

from kraftline import __version__
from kraftline.errors import KraftlineError
from kraftline.lake import builds, delta
from kraftline.lake.builds import Build
from kraftline.lake.compaction import merge, too_many
from kraftline.lake.delta import telling
from kraftline.lake.files import Added, is_local, normal, write_file
from kraftline.lake.lock import locked
from kraftline.lake.sweeping import sweep_tables
from kraftline.lake.tables import LAYOUT, TABLES

KEPT: Final = 5  # builds that stay readable, so that whoever reads one may finish


class Writing:
    """One run's hold on a lake. `build` is what it starts from, None in a new lake."""

    def __init__(self, root: str, found: list[Build]) -> None:
        self.root = root
        self.build = found[-1] if found else None
        self._builds = found
        self._versions = dict(self.build.versions) if self.build else {}
        self._touched: set[str] = set()

    def folder(self, table: str) -> str:
        """Where tasks put the Parquet files of a table, by `files.new_path`."""
        return f"{self.root}/{table}"

    def commit(
        self,
        table: str,
        schema: pa.Schema,
        partition_by: Sequence[str],
        added: Sequence[Added],
        *,
        replace: Sequence[Mapping[str, Sequence[str]]] = (),
    ) -> int:
        """Add files, and remove those of every partition that one of `replace` names; the version
        that `finish` will pin. `{"cluster_id": ["A"], "state": ["open"]}` names one partition,
        `{"cluster_id": ["A"]}` all of a cluster."""
        with telling(self.root):
            found = self._at_start(table)
            if found is None:
                delta.create(self.folder(table), schema, partition_by, added)
                found = DeltaTable(self.folder(table))
            else:
                self._check(table, found, schema)
                gone = [f for f in delta.files_of(found).values() if f.matches(replace)]
                if added or gone:
                    delta.change(found, added, gone)
            return self._moved(table, found)

    def compact(self, table: str, *, order: Sequence[str] = (), max_small: int = 16) -> int:
        """Make one file of many small ones, partition by partition, in an order of columns (for
        the lake's own tables, that of their keys); how many files are gone."""
        with telling(self.root):
            found = self._at_start(table)
            if found is None:
                return 0
            groups = too_many(delta.files_of(found).values(), max_small)
            added = [merge(self.folder(table), table, group, order) for group in groups]
            small = [file for group in groups for file in group]
            if added:
                delta.change(found, added, small, same_rows=True)
            self._moved(table, found)
            return len(small) - len(added)

    def finish(
        self, *, clusters: Mapping[str, bytes | str], inputs: Sequence[str], keep: int = KEPT
    ) -> Build:
        """Pin every table's version in `builds`: from here on readers see this run's work. Tables
        that were never written are made, empty."""
        for table in TABLES.values():
            if table.name not in self._versions:
                self.commit(table.name, table.columns, table.partition_by, ())
        build = Build(
            self.build.build + 1 if self.build else 1,
            datetime.now(UTC),
            __version__,
            LAYOUT,
            dict(self._versions),
            {name: _text(said) for name, said in clusters.items()},
            list(inputs),
        )
        kept = [*self._builds, build][-keep:]
        with telling(self.root):
            folder = self.folder(builds.NAME)
            listed = DeltaTable(folder)
            if [each.build for each in builds.read_builds(listed)] != [
                each.build for each in self._builds
            ]:
                raise KraftlineError(
                    f"{self.root}: another run has finished a build meanwhile; nothing of this one "
                    "shows. Run it again"
                )
            row = write_file(folder, builds.as_rows(kept), {})
            delta.change(listed, [row], delta.files_of(listed).values())
        self.build, self._builds = build, kept
        self._touched.clear()
        return build

    def sweep(self) -> int:
        """Delete the files that no build in `builds` names, nor this run's own commits; how
        many."""
        with telling(self.root):
            versions: dict[str, set[int]] = {}
            for build in self._builds:
                for table, version in build.versions.items():
                    versions.setdefault(table, set()).add(version)
            for table in self._touched:
                versions.setdefault(table, set()).add(self._versions[table])
            return sweep_tables(self.root, versions)

    def give_up(self) -> None:
        """Forget this run's commits, and free the room that its files take, as far as it goes."""
        self._versions = dict(self.build.versions) if self.build else {}
        self._touched.clear()
        with suppress(KraftlineError, OSError):
            self.sweep()

    def _at_start(self, table: str) -> DeltaTable | None:
        """A table as this run has it so far, at its newest version; None: it is yet to be made."""
        start = self._versions.get(table)
        if start is None:
            return None
        found = DeltaTable(self.folder(table))
        if found.version() != start:
            pinned = DeltaTable(self.folder(table), version=start)
            if delta.files_of(found).keys() != delta.files_of(pinned).keys():
                found.restore(start)
                found.update_incremental()
        return found

    def _check(self, table: str, found: DeltaTable, schema: pa.Schema) -> None:
        if found.schema() != Schema.from_arrow(schema):
            raise KraftlineError(
                f"{self.folder(table)}: its columns are not those of this release; build the lake "
                "anew into another folder"
            )

    def _moved(self, table: str, found: DeltaTable) -> int:
        self._versions[table] = int(found.version())
        self._touched.add(table)
        return self._versions[table]


@contextmanager
def writing_to(root: str) -> Iterator[Writing]:
    """Take a lake for writing, which makes it if it is not there. Whatever ends this before
    `finish` leaves the lake as it was."""
    root = normal(root)
    with telling(root):
        if is_local(root):
            os.makedirs(root, exist_ok=True)
            _refuse_foreign(root)
    with _locked(root):
        with telling(root):
            listed = builds.open_builds(root)
            if listed is None:
                delta.create(
                    f"{root}/{builds.NAME}",
                    builds.COLUMNS,
                    (),
                    name="kraftline lake",
                    description=builds.description(),
                )
            found = builds.read_builds(listed) if listed is not None else []
        writing = Writing(root, found)
        try:
            yield writing
        except BaseException:
            writing.give_up()
            raise


@contextmanager
def _locked(root: str) -> Iterator[None]:
    with telling(root):
        held = locked(root)
        held.__enter__()
    try:
        yield
    finally:
        held.__exit__(None, None, None)


def _refuse_foreign(root: str) -> None:
    """A folder with other things in it is nobody's lake."""
    own = {*TABLES, builds.NAME}
    names = [name for name in os.listdir(root) if not name.startswith(("_", "."))]
    if names and not own & set(names):
        raise KraftlineError(
            f"{root}: holds other things ({', '.join(sorted(names)[:3])}); give a new or an empty "
            "folder for a lake"
        )


def _text(said: bytes | str) -> str:
    return said.decode() if isinstance(said, bytes) else said

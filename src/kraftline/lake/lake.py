"""A lake as its newest build has it: every table at the version that the build pins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from kraftline.errors import KraftlineError
from kraftline.lake import builds, sql
from kraftline.lake.builds import Build
from kraftline.lake.columns import rows_in
from kraftline.lake.delta import in_a_line
from kraftline.lake.files import is_local, normal


class Lake:
    """What it answers stays the same while other runs write: it goes on reading its build."""

    def __init__(self, root: str, build: Build) -> None:
        self.root = root
        self.build = build
        self._tables: dict[str, DeltaTable] = {}

    @classmethod
    def at(cls, root: str) -> Self:
        """Open the newest build; KraftlineError where there is no lake, none of this layout, or
        nothing built yet."""
        root = normal(root)
        if is_local(root) and not os.path.isdir(root):
            raise KraftlineError(f"{root}: there is no such folder")
        with _in_words(root):
            listed = builds.open_builds(root)
            found = [] if listed is None else builds.read_builds(listed)
        if listed is None:
            raise KraftlineError(
                f"{root}: not a lake; `kraftline history build --from PATH --to LAKE` makes one"
            )
        if not found:
            raise KraftlineError(
                f"{root}: nothing has been built yet: a first run is under way, or did not finish"
            )
        return cls(root, found[-1])

    def table(self, name: str) -> DeltaTable:
        """A table at its pinned version."""
        if name not in self._tables:
            if name not in self.build.versions:
                known = ", ".join(sorted(self.build.versions))
                raise KraftlineError(f"{self.root}: has no table {name}; there are {known}")
            folder = f"{self.root}/{name}"
            with _in_words(folder):
                self._tables[name] = DeltaTable(folder, version=self.build.versions[name])
        return self._tables[name]

    def dataset(
        self, name: str, where: str | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Rows of a table for which an SQL condition holds; only what it needs is read."""
        wanted = ", ".join(map(sql.name, columns)) if columns else "*"
        said = f"SELECT {wanted} FROM {sql.name(name)}"
        return self.query(f"{said} WHERE {where}" if where else said, name)

    def query(self, text: str, *names: str) -> pa.Table:
        """The answer to an SQL query over the named tables."""
        builder = QueryBuilder()
        for name in names:
            builder.register(name, self.table(name))
        with _in_words(self.root):
            return rows_in(builder.execute(text))


@contextmanager
def _in_words(what: str) -> Iterator[None]:
    """A file that is gone or damaged, a storage that is not known or does not let us in."""
    try:
        yield
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise KraftlineError(f"{what}: cannot be read: {in_a_line(error)}") from error

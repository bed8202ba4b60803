"""Files that nobody will read again: orphans of crashed runs, and those of builds long replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyarrow import fs

from kraftline.lake import builds, delta
from kraftline.lake.files import is_local

_LOG = "_delta_log"


def sweep_tables(root: str, versions: Mapping[str, Iterable[int]]) -> int:
    """Delete every data file below a lake's tables that no given version of its table names; how
    many. Of `builds` itself the newest version counts. Only whoever has the lock may."""
    filesystem, top = _filesystem(root)
    deleted = 0
    for entry in filesystem.get_file_info(fs.FileSelector(top)):
        if entry.type != fs.FileType.Directory or entry.base_name.startswith(("_", ".")):
            continue
        wanted: list[int | None] = list(versions.get(entry.base_name, ()))
        if entry.base_name == builds.NAME:
            wanted = [None]
        named: set[str] = set()
        for version in wanted:
            table = delta.open_table(f"{root}/{entry.base_name}", version)
            named |= delta.files_of(table).keys() if table is not None else set()
        selector = fs.FileSelector(entry.path, recursive=True)
        for file in filesystem.get_file_info(selector):
            inside = file.path[len(entry.path) :].lstrip("/")
            if file.type != fs.FileType.File or inside.startswith(_LOG) or inside in named:
                continue
            filesystem.delete_file(file.path)
            deleted += 1
    return deleted


def _filesystem(root: str) -> tuple[fs.FileSystem, str]:
    if is_local(root):
        return fs.LocalFileSystem(), root
    filesystem, inside = fs.FileSystem.from_uri(root)
    return filesystem, inside

"""Files that nobody will read again: orphans of crashed runs, and those of builds long replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyarrow import fs

from kraftline.lake import builds, delta
from kraftline.lake.files import is_local

_LOG = "_delta_log"
_NUMBER = re.compile(r"(\d{20})\.").match


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
        opened = []
        for version in wanted:
            table = delta.open_table(f"{root}/{entry.base_name}", version)
            if table is not None:
                named |= delta.files_of(table).keys()
                opened.append(int(table.version()))
        deleted += _sweep_data(filesystem, entry.path, named)
        if opened:
            _sweep_log(filesystem, f"{entry.path}/{_LOG}", min(opened))
    return deleted


def _sweep_data(filesystem: fs.FileSystem, folder: str, named: set[str]) -> int:
    deleted = 0
    for file in filesystem.get_file_info(fs.FileSelector(folder, recursive=True)):
        inside = file.path[len(folder) :].lstrip("/")
        if file.type == fs.FileType.File and inside not in named and not inside.startswith(_LOG):
            filesystem.delete_file(file.path)
            deleted += 1
    return deleted


def _sweep_log(filesystem: fs.FileSystem, folder: str, oldest: int) -> None:
    """What a table's log says before the last checkpoint that its oldest version needs."""
    files = filesystem.get_file_info(fs.FileSelector(folder))
    numbered = {file.path: int(found[1]) for file in files if (found := _NUMBER(file.base_name))}
    needed = [
        number for path, number in numbered.items() if "checkpoint" in path and number <= oldest
    ]
    for path, number in numbered.items():
        if needed and number < max(needed):
            filesystem.delete_file(path)


def _filesystem(root: str) -> tuple[fs.FileSystem, str]:
    if is_local(root):
        return fs.LocalFileSystem(), root
    filesystem, inside = fs.FileSystem.from_uri(root)
    return filesystem, inside

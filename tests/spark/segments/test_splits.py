"""Splits tile every file, and begin where batches begin, whatever the indexes are like."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kraftline.records.framing import batches
from kraftline.spark.sources.segment_options import parse_options
from kraftline.spark.sources.segments import plan
from tests.spark.segments.rows import NODE

MIXED = NODE / "mixed-0"
SIZES = (1, 700, 4000, 1 << 26)


def parts(folder: Path, size: int) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for split in plan(parse_options({"path": str(folder), "splitBytes": str(size)})):
        for piece in split.pieces:
            found.setdefault(piece.path, []).append((piece.start, piece.end))
    return found


def starts(log: Path) -> set[int]:
    return {batch.position for batch in batches(log.read_bytes())}


def check(folder: Path, size: int) -> dict[str, list[tuple[int, int]]]:
    found = parts(folder, size)
    for log in folder.glob("*.log"):
        edges = sorted(found[str(log)])
        assert [start for start, _ in edges] == [0, *(end for _, end in edges[:-1])]
        assert edges[-1][1] == log.stat().st_size
        assert {start for start, _ in edges} <= starts(log)
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("indexes", ["as they are", "none", "stale", "empty"])
def test_every_byte_is_in_one_split(tmp_path: Path, size: int, indexes: str) -> None:
    folder = tmp_path / MIXED.name
    shutil.copytree(MIXED, folder)
    for index in folder.glob("*.index"):
        if indexes == "none":
            index.unlink()
        elif indexes == "empty":
            index.write_bytes(bytes(4096))
        elif indexes == "stale":
            shutil.copy(min((NODE / "codec-gzip-0").glob("*.index")), index)
    found = check(folder, size)
    if size == 700:
        assert any(len(edges) > 1 for edges in found.values())


def test_small_files_share_a_split() -> None:
    splits = plan(parse_options({"path": str(NODE)}))
    assert len(splits) == 1
    assert len(splits[0].pieces) > 20


def test_a_python_that_plans_does_not_load_what_makes_rows() -> None:
    code = (
        "import sys\n"
        "import kraftline.spark.sources.segments\n"
        "loaded = {'pyarrow.compute', 'fsspec', 'kraftline.spark.sources.typed'}\n"
        "sys.exit(', '.join(loaded & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

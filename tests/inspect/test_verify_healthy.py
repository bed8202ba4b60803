"""Real files of healthy clusters give no findings: compacted, old, killed, trimmed, moved."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.storage.detect import PathKind, detect
from tests.inspect.damage import FIXTURES, TOPICS, check, copy, findings


def _kind(path: Path) -> PathKind | None:
    try:
        return detect(path)
    except NotKafka:
        return None


LOG_DIRECTORIES = [
    path
    for path in sorted(FIXTURES.glob("*/data/*"))
    if path.is_dir() and _kind(path) is PathKind.LOG_DIRECTORY
]
SEGMENTS = sorted(FIXTURES.glob("batches/data/*.log"))


@pytest.mark.parametrize("path", LOG_DIRECTORIES, ids=lambda p: f"{p.parents[1].name}-{p.name}")
def test_a_healthy_log_directory_has_no_findings(path: Path) -> None:
    assert findings(path) == []


@pytest.mark.parametrize("path", LOG_DIRECTORIES, ids=lambda p: f"{p.parents[1].name}-{p.name}")
def test_every_part_of_a_healthy_log_directory_has_no_findings_by_itself(path: Path) -> None:
    parts = [part for part in sorted(path.rglob("*")) if _kind(part) is not None]
    assert parts
    working = (".deleted", ".swap", ".cleaned")
    assert findings(*(p for p in parts if p.suffix not in working)) == []


def test_batches_of_kafkas_own_builder_have_no_findings() -> None:
    assert len(SEGMENTS) > 50
    assert findings(*SEGMENTS) == []


def test_a_partition_without_its_log_directory_has_no_findings(tmp_path: Path) -> None:
    for name in ("mixed-0", "transactions-0", "compacted-none-0"):
        assert findings(copy(TOPICS / name, tmp_path)) == []


def test_the_summary_counts_what_was_walked() -> None:
    from kraftline.records import batches

    path = TOPICS / "codec-gzip-0"
    logs = sorted(path.glob("*.log"))
    found = [batch for log in logs for batch in batches(log.read_bytes())]
    summary = check(path)[1]
    assert summary.batches == len(found)
    assert summary.records == sum(len(batch.records()) for batch in found)
    assert summary.bytes >= sum(log.stat().st_size for log in logs)
    assert summary.findings == 0


def test_a_directory_that_shrinks_under_the_walk_does_not_stop_it(tmp_path: Path) -> None:
    """As a live broker does: a partition is deleted between listing and reading."""
    node = copy(TOPICS, tmp_path)
    seen: list[int] = []

    from kraftline.inspect.verify import verify

    def progress(count: int) -> None:
        if not seen:
            shutil.rmtree(node / "mixed-0", ignore_errors=True)
            (node / "transactions-0" / "00000000000000000003.log").unlink()
        seen.append(count)

    found: list[str] = []
    verify(
        [str(node)], lambda f: found.append(f.code) if not f.is_note else None, progress=progress
    )
    assert [code for code in found if code == "unreadable"] == []

"""Real files of healthy clusters give no findings: compacted, old, killed, trimmed, moved."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.inspect.verify import Finding, verify
from kraftline.records import batches
from kraftline.storage.detect import PathKind, detect
from tests.inspect.damage import FIXTURES, TOPICS, check, codes, copy, findings


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
    path = TOPICS / "codec-gzip-0"
    logs = sorted(path.glob("*.log"))
    found = [batch for log in logs for batch in batches(log.read_bytes())]
    summary = check(path)[1]
    assert summary.batches == len(found)
    assert summary.records == sum(len(batch.records()) for batch in found)
    assert summary.bytes >= sum(log.stat().st_size for log in logs)
    assert summary.findings == 0


def walk_while(path: Path, happens: Callable[[], object]) -> list[str]:
    """Codes of findings when something happens to the files as soon as reading has begun."""
    seen: list[int] = []
    found: list[Finding] = []

    def progress(count: int) -> None:
        if not seen:
            happens()
        seen.append(count)

    verify([str(path)], found.append, progress=progress)
    assert seen
    return [finding.code for finding in found if not finding.is_note]


def test_a_directory_that_shrinks_under_the_walk_does_not_stop_it(tmp_path: Path) -> None:
    """As a live broker does: a partition is deleted between listing and reading."""
    node = copy(TOPICS, tmp_path)

    def happens() -> None:
        shutil.rmtree(node / "mixed-0")
        (node / "transactions-0" / "00000000000000000003.log").unlink()

    assert "unreadable" not in walk_while(node, happens)


def test_a_transaction_index_that_is_made_during_the_walk_counts(tmp_path: Path) -> None:
    """Kafka makes it at the first abort."""
    partition = copy(TOPICS / "transactions-0", tmp_path)
    index = partition / "00000000000000000003.txnindex"
    aside = index.rename(tmp_path / "aside")
    assert codes(partition) == ["txnindex-entry"] * (aside.stat().st_size // 34)
    assert walk_while(partition, lambda: shutil.move(aside, index)) == []


def test_indexes_are_not_judged_where_compaction_swaps_the_log(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    log = partition / "00000000000000000003.log"
    index = log.with_suffix(".index")
    index.write_bytes(b"\x00\x00\x00\x05\x00\x00\x00\x07")
    assert codes(partition) == ["index-position"]

    def happens() -> None:
        swap = log.with_suffix(".log.swap")
        shutil.copy(log, swap)
        swap.replace(log)

    # Only the segment that was swapped after its indexes were read.
    assert walk_while(log, happens) == []

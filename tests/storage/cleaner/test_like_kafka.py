"""The same dirty log, cleaned by Kafka's own cleaner and by ours, is the same afterwards."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kraftline.records import Batch, batches
from tests.effort import rounds
from tests.storage.cleaner.dirty_logs import STORIES, Story, opened, random_story, write_chapter
from tests.storage.cleaner.kafkas_cleaner import KafkasCleaner
from tests.storage.cleaner.rounds import clean
from tests.storage.log.logs import NOW, Clock

pytestmark = pytest.mark.oracle


def headers(batch: Batch) -> dict[str, object]:
    names = (
        "magic",
        "base_offset",
        "last_offset",
        "attributes",
        "base_timestamp",
        "max_timestamp",
        "delete_horizon_ms",
        "partition_leader_epoch",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "count",
    )
    return {name: getattr(batch, name) for name in names}


def compare(ours: Path, theirs: Path, packed: bool) -> None:
    def names(directory: Path) -> list[str]:
        # Kafka keeps the snapshot where it stopped; when it takes others is not the cleaner's.
        kept = (".log", ".index", ".timeindex", ".txnindex")
        return sorted(path.name for path in directory.iterdir() if path.name.endswith(kept))

    # An empty transaction index is none.
    assert {n for n in names(ours) if not n.endswith("txnindex")} == {
        n for n in names(theirs) if not n.endswith("txnindex")
    }
    for name in sorted({*names(ours), *names(theirs)}):
        mine = (ours / name).read_bytes() if (ours / name).exists() else b""
        kafkas = (theirs / name).read_bytes() if (theirs / name).exists() else b""
        if name.endswith(".log"):
            found, expected = list(batches(mine)), list(batches(kafkas))
            assert [headers(each) for each in found] == [headers(each) for each in expected], name
            for a, b in zip(found, expected, strict=True):
                assert a.records() == b.records(), name
        if not packed or name.endswith("txnindex"):
            assert mine == kafkas, name


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_cleaned_log_is_kafkas(story: Story, kafkas: KafkasCleaner, tmp_path: Path) -> None:
    clean_both(story, kafkas, tmp_path)


@pytest.mark.parametrize("seed", range(1, rounds(4) + 1))
def test_any_cleaned_log_is_kafkas(seed: int, kafkas: KafkasCleaner, tmp_path: Path) -> None:
    clean_both(random_story(seed), kafkas, tmp_path)


def clean_both(story: Story, kafkas: KafkasCleaner, tmp_path: Path) -> None:
    """After each chapter; the next one goes on with ours."""
    ours, theirs = tmp_path / "ours" / "t-0", tmp_path / "theirs" / "t-0"
    clock, checkpoint = Clock(), None
    for number, (_, time) in enumerate(story.chapters):
        clock.now = NOW + time
        write_chapter(story, number, ours, clock)
        if theirs.exists():
            shutil.rmtree(theirs)
        shutil.copytree(ours, theirs)
        clock.now = NOW + time + 60_000
        before = sum(path.stat().st_size for path in ours.glob("*.log"))
        said = kafkas.clean(
            theirs, story.settings, clock.now, checkpoint=checkpoint, memory=story.memory
        )
        log = opened(story, ours, clock)
        cleaned = clean(log, checkpoint, clock.now, story.memory)
        log.close()
        compare(ours, theirs, story.packed)
        counted = cleaned.statistics
        assert cleaned.end == said["cleanedTo"]
        assert counted.records_read == said["recordsRead"]
        assert counted.records_written == said["recordsWritten"]
        assert counted.invalid_records == said["invalid"]
        assert counted.bytes_read == said["bytesRead"]
        if not story.packed:
            assert counted.bytes_written == said["bytesWritten"]
        after = sum(path.stat().st_size for path in ours.glob("*.log"))
        assert after <= before or number
        for directory in (ours, theirs):
            for path in directory.glob("*.deleted"):
                os.unlink(path)
        checkpoint = cleaned.end

"""A crash at any step of a cleaning: whoever opens the log then finishes the swap or undoes it, and
what it does is what Kafka does."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftline.records import Record, batches
from kraftline.storage.log import PartitionLog, Stopped
from tests.effort import SOAK
from tests.storage.cleaner.dirty_logs import STORIES, Story, opened, write_chapter
from tests.storage.cleaner.kafkas_cleaner import KafkasCleaner
from tests.storage.cleaner.rounds import clean
from tests.storage.log.logs import NOW, Clock, assert_healthy, log_directory

BY_NAME = {story.name: story for story in STORIES}


def records_in(directory: Path) -> list[Record]:
    return [
        record
        for path in sorted(directory.glob("*.log"))
        for batch in batches(path.read_bytes())
        for record in batch.records()
    ]


class States(NamedTuple):
    """The directory before some renames of a cleaning, with the records before and after all of
    it, and the log's end."""

    directories: list[Path]
    before: list[Record]
    after: list[Record]
    end: int


def states_of(story: Story, root: Path, patched: pytest.MonkeyPatch, step: int) -> States:
    """Of the second cleaning of a story, before every so many-th rename."""
    directory, clock = root / "data" / "t-0", Clock()
    write_chapter(story, 0, directory, clock)
    log = opened(story, directory, clock)
    checkpoint = clean(log, None, clock.now).end
    log.close()
    for path in directory.glob("*.deleted"):
        path.unlink()
    clock.now = NOW + story.chapters[1][1]
    write_chapter(story, 1, directory, clock)
    before = records_in(directory)
    log = opened(story, directory, clock)
    states: list[Path] = []
    rename, numbers = os.rename, count()

    def noted(old: str, new: str) -> None:
        if next(numbers) % step == 0:
            states.append(root / f"state-{len(states)}" / "t-0")
            shutil.copytree(directory, states[-1])
        rename(old, new)

    with patched.context() as renaming:
        renaming.setattr(os, "rename", noted)
        clean(log, checkpoint, clock.now)
    end = log.end_offset
    log.close()
    return States(states, before, records_in(directory), end)


def torn(state: Path) -> Path:
    """The same, but the cleaned file was only half written."""
    copy = state.parent.with_name("torn") / "t-0"
    shutil.copytree(state, copy)
    (cleaned,) = copy.glob("*.log.cleaned")
    os.truncate(cleaned, cleaned.stat().st_size // 2)
    for path in copy.glob("*index.cleaned"):
        path.unlink()
    return copy


def reopened(story: Story, directory: Path, recovery_point: int) -> int:
    stopped = Stopped(clean=False, recovery_point=recovery_point)
    log = PartitionLog.open(directory, story.log_config, stopped=stopped, clock=Clock())
    assert log.opening.cuts == ()
    end = log.end_offset
    log.close()
    return end


def ordinary(directory: Path) -> dict[str, bytes]:
    """The segments' files, by name."""
    kept = (".log", ".index", ".timeindex", ".txnindex")
    assert not [p.name for p in directory.iterdir() if p.suffix in (".cleaned", ".swap")]
    found = {p.name: p.read_bytes() for p in directory.iterdir() if p.name.endswith(kept)}
    # An empty transaction index is none.
    return {name: data for name, data in found.items() if data or not name.endswith("txnindex")}


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["plain", "transactions"])
@pytest.mark.parametrize("checks_all", [False, True], ids=["flushed", "unflushed"])
def test_a_crash_between_any_two_names(
    name: str,
    checks_all: bool,
    kafkas: KafkasCleaner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = BY_NAME[name]
    states = states_of(story, tmp_path, monkeypatch, 1 if SOAK else 9 if checks_all else 4)
    assert len(states.directories) > 4
    kept = {record.offset for record in states.after}
    known = {record.offset for record in states.before}
    point = 0 if checks_all else states.end
    for state in [torn(states.directories[0]), *states.directories]:
        theirs = state.parent.with_name(f"{state.parent.name}-kafka") / "t-0"
        shutil.copytree(state, theirs)
        assert reopened(story, state, point) == states.end
        assert kafkas.open(theirs, story.settings, NOW, point) == states.end
        assert ordinary(state) == ordinary(theirs)
        # Some groups may be clean and some not yet; nothing else was lost, nothing came back.
        assert kept <= {record.offset for record in records_in(state)} <= known


def test_what_a_crash_left_is_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = BY_NAME["deletes"]
    states = states_of(story, tmp_path, monkeypatch, 7)
    for state in states.directories:
        log_directory(state.parent)
        reopened(story, state, states.end)
        assert_healthy(state.parent)

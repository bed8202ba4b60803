"""Progress bars: on a terminal, once work takes over a second, and never in the way."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import click
import pytest

from kraftline.cli import progress, snapshot, verify
from kraftline.cli.job_progress import JobProgress, starting
from kraftline.cli.metadata_log import log_bytes
from kraftline.cli.progress import Bar
from kraftline.errors import KraftlineError
from kraftline.inspect.dump import read_all
from kraftline.inspect.dump.rows import Selection
from kraftline.inspect.dump.sources import Wanted, find_sources
from kraftline.inspect.snapshots import read_state
from kraftline.inspect.verify import total_bytes
from kraftline.inspect.verify import verify as walk
from kraftline.spark.build import Step
from tests.inspect.damage import FIXTURES, METADATA, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = METADATA / "__cluster_metadata-0"


class Terminal(io.StringIO):
    """Standard error that is a terminal, while all work counts as long. Put there within a test:
    between a fixture and its test pytest sets standard error anew."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        monkeypatch.setattr(sys, "stderr", self)
        monkeypatch.setattr(progress, "_AFTER", 0)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")

    def isatty(self) -> bool:
        return True

    def shows(self, text: str) -> bool:
        """Whether it comes to that, within some seconds."""
        until = time.monotonic() + 10
        while text not in self.getvalue():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True


def test_long_work_shows_what_is_done_and_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    with Bar(4_000_000, "reading") as bar:
        assert terminal.shows("reading")
        bar.update(1_000_000)
        bar.advance(2_000_000)
        assert terminal.shows("3.0/4.0 MB")


def test_a_total_is_asked_for_when_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    with Bar(lambda: 5_000_000, "checking"):
        assert terminal.shows("0.0/5.0 MB")


def test_work_without_a_measure_shows_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    with Bar(None, "replaying"):
        assert terminal.shows("replaying")
        assert terminal.shows("0:00:0")


def test_lines_are_written_while_no_bar_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    with Bar(100, "checking") as bar:
        assert terminal.shows("checking")
        bar.aside(lambda: print("a finding", file=terminal))
        shown = terminal.getvalue()
    assert "a finding\n" in shown
    # What comes before it ends the bar: the line is wiped out.
    assert shown.partition("a finding")[0].rstrip("\r").endswith("\x1b[2K")


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    monkeypatch.setattr(progress, "_AFTER", 60)
    with Bar(100, "reading") as bar:
        bar.update(100)
        bar.aside(lambda: None)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_shown_without_a_terminal_of_its_own(
    monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    terminal = Terminal(monkeypatch)
    monkeypatch.setattr(terminal, "isatty", lambda: quiet)
    with Bar(100, "reading", quiet=quiet) as bar:
        time.sleep(0.1)
        bar.update(50)
    assert terminal.getvalue() == ""


def run(command: click.Command, *args: object) -> int:
    code: int | None = command.main([str(each) for each in args], standalone_mode=False)
    return code or 0


def slowly(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, wait: Callable[[], bool]
) -> None:
    """Have a module's function wait for something before it begins."""
    real = getattr(module, name)

    def slow(*args: object, **options: object) -> object:
        assert wait()
        return real(*args, **options)

    monkeypatch.setattr(module, name, slow)


def test_verify_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    slowly(monkeypatch, verify, "verify", lambda: terminal.shows("checking"))
    assert run(verify.command, LOG) == 0


@pytest.mark.parametrize("verb", [["write"], ["edit", "--delete-topic", "orders"]])
def test_snapshot_shows_a_bar_for_reading_and_for_writing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: list[str]
) -> None:
    terminal = Terminal(monkeypatch)
    slowly(monkeypatch, snapshot, "read_state", lambda: terminal.shows("replaying"))
    slowly(monkeypatch, snapshot, "write_state", lambda: terminal.shows("writing"))
    run(snapshot.command, *verb, LOG, "--out", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def unexpected(trouble: object) -> None:
    raise AssertionError(trouble)


def test_a_dump_counts_on_from_file_to_file() -> None:
    sources = list(find_sources([str(LOG)], Wanted(), unexpected))
    seen: list[int] = []
    assert list(read_all(sources, Selection(), unexpected, unexpected, seen.append))
    assert seen == sorted(seen)
    assert seen[-1] > sum(Path(source.path).stat().st_size for source in sources[:-1])


def test_snapshot_counts_the_log_as_it_is_opened_and_as_it_is_replayed() -> None:
    done: list[int] = []
    read_state([str(LOG)], progress=done.append)
    assert sum(done) == 2 * log_bytes([str(LOG)]) > 0


def test_the_audit_counts_for_the_bar_and_not_for_the_summary() -> None:
    nodes = sorted((FIXTURES / "upgraded_4_3" / "data").glob("node-*"))
    for paths in ([LOG], nodes):
        done: list[int] = []
        names = list(map(str, paths))
        summary = walk(names, lambda finding: None, progress=done.append)
        assert summary.bytes == check(*paths)[1].bytes
        assert summary.bytes * 1.5 < sum(done) <= total_bytes(names) * 1.05


def _cancelled() -> None:
    """What a job is to whoever waits for it when Ctrl-C is pressed."""
    try:
        raise KeyboardInterrupt
    finally:
        raise RuntimeError("job 0 cancelled as part of cancellation of all jobs")


def test_what_control_c_leads_to_in_spark_is_control_c() -> None:
    spark = cast("SparkSession", None)  # nobody asks it how far it is
    with pytest.raises(KeyboardInterrupt), JobProgress(spark, quiet=True):
        _cancelled()
    with pytest.raises(KraftlineError, match="full"), JobProgress(spark, quiet=True):
        raise KraftlineError("the disk is full") from OSError(28, "No space left on device")


def test_the_bar_of_a_watch_shows_the_build_under_way_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracker = SimpleNamespace(getActiveStageIds=list)
    context = SimpleNamespace(statusTracker=lambda: tracker)
    spark = cast("SparkSession", SimpleNamespace(sparkContext=context))
    Terminal(monkeypatch)
    with JobProgress(spark, quiet=False) as shown:
        for _ in range(3):
            for name in ("survey", "stage", "commit"):
                shown(Step(name))
                shown(Step(name, rows=5, seconds=0.1))
        assert shown._bar is not None
        assert [task.description for task in shown._bar.tasks] == [
            "look at files",
            "read records",
            "commit",
        ]


def test_a_terminal_shows_that_spark_is_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    """While standard error is given to Java."""
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with starting(quiet=True):
            pass
        with starting(quiet=False):
            time.sleep(0.3)
        said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert said.count("\n") <= 1
    assert "starting Spark" in said

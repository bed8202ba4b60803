"""How Spark's jobs get on: a bar with stages, rows and rates on a terminal, lines in a log."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress

    from kraftline.spark.build import Step

_SAID = {
    "survey": "look at files",
    "stage": "read records",
    "history": "make history",
    "topics": "read topics",
    "commit": "commit",
}
_EVERY = 0.3


@contextmanager
def starting(*, quiet: bool) -> Iterator[None]:
    """Something that moves on a terminal while Java starts, which takes some seconds."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    # Standard error itself is Java's meanwhile.
    with (
        os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal,
        Console(file=terminal).status("starting Spark"),
    ):
        yield


class JobProgress:
    """Takes the steps of builds, or stages by their names. A context manager, which takes the bar
    away at its end; what Ctrl-C has led to leaves it as KeyboardInterrupt."""

    def __init__(self, spark: SparkSession, *, quiet: bool) -> None:
        self._spark, self._quiet = spark, quiet
        self._bar: Progress | None = None
        self._over = threading.Event()
        self._watching: threading.Thread | None = None
        self._stage: tuple[str, float] | None = None

    def __enter__(self) -> Self:
        logging.getLogger().addFilter(_is_news)
        if sys.stderr.isatty() and not self._quiet:
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.SpinnerColumn(),
                progress.TextColumn("{task.description:<14}"),
                progress.BarColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.fields[said]}"),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=sys.stdout.isatty(),  # a pipe gets what is said as it is
            )
            self._bar.start()
            self._watching = threading.Thread(target=self._watch, daemon=True)
            self._watching.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._stage_over()
        self._over.set()
        if self._bar is not None:
            self._bar.stop()
        if error is not None and _is_control_c(error):
            raise KeyboardInterrupt from None

    def stage(self, name: str) -> None:
        """A step that lasts until the next one begins."""
        from kraftline.spark.build import Step

        self._stage_over()
        self._stage = name, time.monotonic()
        self(Step(name))

    def _stage_over(self) -> None:
        from kraftline.spark.build import Step

        if self._stage is not None:
            name, begun = self._stage
            self._stage = None
            self(Step(name, seconds=time.monotonic() - begun))

    def __call__(self, step: Step) -> None:
        name = _SAID.get(step.name, step.name)
        if self._quiet:
            return
        if self._bar is None:
            if step.seconds is not None:
                click.echo(f"{name}: {_told(step)}", err=True)
            return
        if step.seconds is None:
            if any(task.description == name for task in self._bar.tasks):
                self._clear()  # a build after another, of those that watch
            self._bar.add_task(name, total=None, said="")
            return
        task = self._bar.task_ids[-1]
        self._bar.update(task, total=1, completed=1, said=_told(step))

    def _clear(self) -> None:
        assert self._bar is not None
        for each in list(self._bar.task_ids):
            self._bar.remove_task(each)

    def _watch(self) -> None:
        """Show the tasks of Spark's jobs in the bar of the step under way."""
        tracker = self._spark.sparkContext.statusTracker()
        while not self._over.wait(_EVERY):
            steps = self._bar.tasks if self._bar is not None else []
            if self._bar is None or not steps or steps[-1].finished:
                continue
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            tasks = sum(each.numTasks for each in stages if each)
            done = sum(each.numCompletedTasks for each in stages if each)
            if tasks and not steps[-1].finished:
                said = f"{done} of {tasks} tasks"
                with suppress(KeyError):  # another build has begun meanwhile
                    # One more than there are: only the step itself says that it is done.
                    self._bar.update(steps[-1].id, total=tasks + 1, completed=done, said=said)


def _is_news(record: logging.LogRecord) -> bool:
    """Not what the bridge to the JVM says when Ctrl-C cuts it: the command says that by itself."""
    return not record.getMessage().endswith("while sending command.")


def _is_control_c(error: BaseException) -> bool:
    """Spark cancels its jobs, and whoever waited for one of them then fails over that."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found is not None


def _told(step: Step) -> str:
    seconds = step.seconds or 0.0
    if not step.rows:
        return f"{seconds:.1f} s"
    rate = f", {step.rows / seconds:,.0f} a second" if seconds >= 0.5 else ""
    return f"{step.rows:,} rows in {seconds:.1f} s{rate}"

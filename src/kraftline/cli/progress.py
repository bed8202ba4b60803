"""A progress bar on the terminal, for work that takes over a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import RLock, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

_AFTER = 1.0


class Bar:
    """Shows how many of `total` bytes are done, on a terminal's stderr and not before a second.

    A total that takes time to find out is asked for when it is shown; with None the bar only says
    that the work goes on, and since when. Nothing is shown while records go to the same terminal:
    they would get into each other's way.
    """

    def __init__(
        self, total: int | Callable[[], int] | None, label: str, *, quiet: bool = False
    ) -> None:
        self._total = total
        self._label = label
        self._wanted = not quiet and sys.stderr.isatty()
        self._done = 0
        self._shown: tuple[Progress, TaskID] | None = None
        # Both the timer and whoever works touch what is shown.
        self._lock = RLock()
        self._timer = Timer(_AFTER, self._show)
        self._timer.daemon = True

    def update(self, done: int) -> None:
        self._done = done
        if self._shown is not None:
            progress, task = self._shown
            progress.update(task, completed=done)

    def advance(self, count: int) -> None:
        self.update(self._done + count)

    def aside(self, write: Callable[[], None]) -> None:
        """Write lines to the terminal without a bar in the middle of them."""
        with self._lock:
            if self._shown is None:
                write()
                return
            progress, _ = self._shown
            progress.stop()
            write()
            progress.start()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        total = self._total() if callable(self._total) else self._total
        with self._lock:
            shown = Progress(*_columns(total), console=Console(stderr=True), transient=True)
            task = shown.add_task(self._label, total=total or None)
            self._shown = shown, task
            # What is done from here on comes by itself.
            shown.update(task, completed=self._done)
            shown.start()

    def __enter__(self) -> Self:
        if self._wanted:
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._wanted:
            self._timer.cancel()
            self._timer.join()
        if self._shown is not None:
            self._shown[0].stop()


def _columns(total: int | None) -> list[ProgressColumn]:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
    if total is None:
        return [*columns, TimeElapsedColumn()]
    return [*columns, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()]

"""A progress bar on the terminal, for work that takes over a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_AFTER = 1.0


class Bar:
    """Shows how many of `total` bytes are done, on a terminal's stderr and not before a second.

    Nothing is shown while records go to the same terminal: they would get into each other's way.
    """

    def __init__(self, total: int, label: str, *, quiet: bool = False) -> None:
        self._total = total
        self._label = label
        self._wanted = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def update(self, done: int) -> None:
        if not self._wanted:
            return
        if self._shown is None:
            if time.monotonic() - self._started < _AFTER:
                return
            self._show()
        assert self._shown is not None
        assert self._task is not None
        self._shown.update(self._task, completed=done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._shown.add_task(self._label, total=self._total)
        self._shown.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.stop()

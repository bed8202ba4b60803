"""Files and directories that have their `.deleted` or `-delete` name and go after a while."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading


class Removals:
    """What is to be removed, and when (ms). Any thread may add and any may remove."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, path: str, due: int) -> None:
        with self._lock:
            self._waiting.append((due, path))

    def remove_due(self, now: int) -> int:
        """Remove all whose time has come; how many."""
        with self._lock:
            due = [path for when, path in self._waiting if when <= now]
            self._waiting = [each for each in self._waiting if each[0] > now]
        for path in due:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        return len(due)

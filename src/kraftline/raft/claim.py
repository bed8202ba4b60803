"""Who owns a log directory: no two logs at once, of other processes or of this one."""

from __future__ import annotations

import os

from kraftline.raft.problems import LogRefused
from kraftline.storage.files import Path
from kraftline.storage.lock import DirectoryLock

# POSIX locks do not stop a process from taking its own lock again, and closing that second
# descriptor would drop the first lock: so a process must know what it holds.
_held: set[str] = set()


class Claim:
    """Holds a directory until `release`. With `lock`, the caller holds `.lock` already."""

    def __init__(self, directory: Path, lock: DirectoryLock | None = None) -> None:
        self._name = os.path.realpath(directory)
        if self._name in _held:
            raise LogRefused(
                f"{os.fspath(directory)}: its metadata log is open in this process already; "
                "close that one first"
            )
        self._lock = DirectoryLock(directory) if lock is None else None
        _held.add(self._name)

    def release(self) -> None:
        if self._name in _held:
            _held.discard(self._name)
            if self._lock is not None:
                self._lock.release()

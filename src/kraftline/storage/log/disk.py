"""The disk under a log directory: whether it works, and what to say where it does not.

A full disk passes: what was asked for fails and nothing else happens. Any other error of the
disk takes the directory offline for good, since nothing that it says can be trusted any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from kraftline.storage.log.problems import DirectoryOffline, DiskFull, StorageFailed, is_full


class Disk:
    """One log directory's. `on_failure` is told once when it goes offline."""

    def __init__(
        self, path: str, on_failure: Callable[[DirectoryOffline], None] | None = None
    ) -> None:
        self.path = path
        self.failure: DirectoryOffline | None = None
        self.on_failure = on_failure

    def failed(self, error: OSError, doing: str) -> StorageFailed:
        """What to raise for an error of the disk."""
        if is_full(error):
            what = f"{self.path}: {doing}: {error.strerror or error}"
            return DiskFull(f"{what}; it goes on when there is room")
        return self.lost(error, doing)

    def lost(self, error: OSError, doing: str) -> StorageFailed:
        """The same where even a full disk leaves things unknown, as a failed flush does."""
        what = f"{self.path}: {doing}: {error.strerror or error}"
        if self.failure is None:
            self.failure = DirectoryOffline(f"{what}; the log directory is offline from now on")
            if self.on_failure is not None:
                self.on_failure(self.failure)
        return DirectoryOffline(str(self.failure))

    def check(self) -> None:
        if self.failure is not None:
            raise DirectoryOffline(str(self.failure))

    @contextlib.contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Around work on the disk: its errors become StorageFailed."""
        self.check()
        try:
            yield
        except OSError as error:
            raise self.failed(error, what) from error

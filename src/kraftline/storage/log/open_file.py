"""An open file that many may hold: it is closed when the last of them lets go.

So a reader can go on sending from a segment that was deleted meanwhile, and a flush in a thread
never meets a descriptor that has become another file's.
"""

from __future__ import annotations

import os


class OpenFile:
    __slots__ = ("fd", "path")

    def __init__(self, path: str, flags: int = os.O_RDONLY) -> None:
        self.fd = -1
        self.path = path
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def write(self, data: memoryview | bytes, position: int) -> None:
        """Write all of the data at a position."""
        written = os.pwrite(self.fd, data, position)
        while written < len(data):
            written += os.pwrite(self.fd, memoryview(data)[written:], position + written)

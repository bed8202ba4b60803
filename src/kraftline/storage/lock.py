"""`.lock`: the advisory lock by which one broker owns a log directory.

Kafka's is a POSIX record lock on the whole file, so what is here and a JVM respect each other.
POSIX drops a process's locks on a file when that process closes any descriptor of it: a process
that holds a directory must not ask about the same directory again.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys

from kraftline.errors import NotKafka
from kraftline.storage.files import Path, unwritable

NAME = ".lock"
# struct flock of Linux: type, whence, start, length, process id.
_FLOCK = struct.Struct("@hhqqi")


class DirectoryLock:
    """Holds a log directory until `release`; a context manager."""

    def __init__(self, directory: Path) -> None:
        self.path = os.path.join(os.fspath(directory), NAME)
        try:
            self._fd: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise unwritable(self.path, error) from error
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise NotKafka(
                f"{os.fspath(directory)}: another process owns this log directory; "
                "stop it first, or use another directory"
            ) from error

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


def owner(directory: Path) -> int | None:
    """The process that holds the directory, or None. Asks without ever taking the lock,
    which would make a broker that starts at this moment fail.

    0 where another machine or container holds it. Always None where the system is not Linux.
    """
    if sys.platform != "linux":
        return None
    try:
        fd = os.open(os.path.join(os.fspath(directory), NAME), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, question))
    except OSError:
        return None
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(0, int(pid))

"""One run at a time writes to a lake. On a local path the lock dies with its process.

Elsewhere there is none to take: two runs are then told apart when they commit, and the later one
fails with nothing of it to be seen.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from kraftline.errors import KraftlineError
from kraftline.lake.files import is_local

_NAME = "_lock"


class Holder(msgspec.Struct, frozen=True):
    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


@contextmanager
def locked(root: str) -> Iterator[None]:
    """Hold a lake's lock; KraftlineError, saying who has it, if another run does."""
    if not is_local(root):
        yield
        return
    path = os.path.join(root, _NAME)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = _holder(handle)
            raise KraftlineError(
                f"{root}: another run is writing to this lake ({who}); wait for it to end"
            ) from None
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        said = msgspec.json.encode(Holder(os.getpid(), socket.gethostname(), now))
        os.ftruncate(handle, 0)
        os.pwrite(handle, said, 0)
        yield
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    try:
        return str(msgspec.json.decode(os.pread(handle, 4096, 0), type=Holder))
    except msgspec.MsgspecError:  # it has the lock and has not said so yet
        return "just started"

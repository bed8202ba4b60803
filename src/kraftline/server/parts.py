"""What an answer is made of: bytes, and ranges of files that go to the socket without passing
through Python's memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct


class FileRange(Struct, frozen=True):
    """`length` bytes of an open file. `release` is called once they are sent, or never will be;
    `owner` is kept as long as the range is, for files that close themselves."""

    descriptor: int
    position: int
    length: int
    release: Callable[[], None] | None = None
    owner: object = None

    def read(self) -> bytes:
        """The bytes themselves; shorter than `length` if the file was cut."""
        return os.pread(self.descriptor, self.length, self.position)

    def is_cached(self) -> bool:
        """Are its first bytes in memory, so that sending does not wait for a disk?"""
        if self.length == 0:
            return True
        try:
            return os.preadv(self.descriptor, [bytearray(1)], self.position, os.RWF_NOWAIT) > 0
        except BlockingIOError:
            return False
        except OSError:  # a file system that cannot tell
            return True

    def warm(self) -> None:
        """Read it through, for whoever can wait."""
        at, end, chunk = self.position, self.position + self.length, bytearray(1 << 20)
        while at < end:
            done = os.preadv(self.descriptor, [memoryview(chunk)[: end - at]], at)
            if done == 0:
                return
            at += done


Part: TypeAlias = "bytes | FileRange"
Answer: TypeAlias = "list[Part] | None"


def length_of(answer: list[Part]) -> int:
    return sum(each.length if isinstance(each, FileRange) else len(each) for each in answer)

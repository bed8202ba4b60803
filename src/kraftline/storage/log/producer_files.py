"""The `.snapshot` files of producer state in a partition's directory.

One is taken where a segment begins and where the log was closed, so that opening the log reads
the newest and then only what follows it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from kraftline.errors import BadData
from kraftline.storage.log.problems import is_full
from kraftline.storage.log.producers import ProducerStates
from kraftline.storage.names import FileKind, format_segment_file
from kraftline.storage.producer_snapshot import format_producer_snapshot, read_producer_snapshot


class ProducerFiles:
    """`offsets` of the snapshots that are there, rising; `last` is the newest taken or loaded."""

    __slots__ = ("directory", "last", "offsets", "unsynced")

    def __init__(self, directory: str, offsets: Iterable[int] = ()) -> None:
        self.directory = directory
        self.offsets = sorted(offsets)
        self.last = 0
        self.unsynced: list[str] = []

    def path(self, offset: int) -> str:
        return os.path.join(self.directory, format_segment_file(offset, FileKind.PRODUCER_SNAPSHOT))

    def take(self, states: ProducerStates) -> None:
        """A snapshot at the states' end, unless one is there. It is flushed with the log.

        None on a full disk: that costs only the reading of one segment more when the log is opened.
        """
        if states.end_offset <= self.last:
            return
        path = self.path(states.end_offset)
        try:
            with open(path, "wb") as file:
                file.write(format_producer_snapshot(states.entries()))
        except OSError as error:
            self.remove(states.end_offset)
            if is_full(error):
                return
            raise
        self.unsynced.append(path)
        self.last = states.end_offset
        self.offsets = sorted({*self.offsets, states.end_offset})

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Of those that no segment begins at, only the newest may stay, and only above them all."""
        bases = set(base_offsets)
        strays = [offset for offset in self.offsets if offset not in bases]
        kept = strays[-1:] if strays and strays[-1] >= max(bases, default=0) else []
        for offset in strays:
            if offset not in kept:
                self.remove(offset)

    def keep_between(self, start_offset: int, end_offset: int) -> None:
        """Remove those at or before the log's start, or past its end."""
        for offset in list(self.offsets):
            if offset > end_offset or offset <= start_offset:
                self.remove(offset)

    def load_newest(self, states: ProducerStates, start_offset: int, now: int) -> list[str]:
        """Load the newest that can be read; those that cannot go. What to tell of them."""
        notes = []
        while self.offsets:
            offset = self.offsets[-1]
            try:
                states.load(read_producer_snapshot(self.path(offset)), offset, now)
            except BadData as error:
                notes.append(f"{error}; removed")
                self.remove(offset)
            else:
                self.last = offset
                return notes
        states.clear(start_offset)
        self.last = start_offset
        return notes

    def start_moved(self, states: ProducerStates, start_offset: int) -> None:
        states.end_offset = max(states.end_offset, start_offset)
        self.last = self.offsets[-1] if self.offsets else start_offset

    def sync(self) -> None:
        """Make durable what was taken."""
        while self.unsynced:
            path = self.unsynced[0]
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                fd = -1  # deleted with its segment since
            if fd >= 0:
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            del self.unsynced[0]

    def forget(self, offset: int) -> None:
        """It goes with its segment."""
        if offset in self.offsets:
            self.offsets = [each for each in self.offsets if each != offset]

    def remove(self, offset: int) -> None:
        self.forget(offset)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(offset))

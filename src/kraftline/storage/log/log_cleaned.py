"""A log as the cleaner wants it: what it has to know, and how cleaned segments come in."""

from __future__ import annotations

import os

import msgspec

from kraftline.storage.log import reading
from kraftline.storage.log.log_base import LogBase
from kraftline.storage.log.open_file import OpenFile
from kraftline.storage.log.segment import Segment
from kraftline.storage.names import FileKind, Working
from kraftline.storage.txn_index import AbortedTxn


class LastOfProducer(msgspec.Struct, frozen=True):
    """The last offset of a producer's last batch, if it has one here, and its epoch."""

    last_offset: int | None
    epoch: int


class CleanedLog(LogBase):
    __slots__ = ()

    def last_of_producers(self) -> dict[int, LastOfProducer]:
        """Where each producer that is known has its last batch, by producer id."""
        with self._lock:
            return {
                each.id: LastOfProducer(
                    each.batches[-1].last_offset if each.batches else None, each.epoch
                )
                for each in self.producers.all()
            }

    def aborted_between(self, start: int, end: int) -> list[AbortedTxn]:
        """The aborted transactions that touch offsets from start to end (exclusive)."""
        with self.disk.doing(f"reading transaction indexes of {self.name}"):
            return self._files.look(
                lambda segments: reading.aborted_from(segments, segments.of(start), start, end)
            )

    def has(self, segments: tuple[Segment, ...]) -> bool:
        """Whether the log is open, and all of these are still in it."""
        with self._lock:
            return not self._is_closed and set(segments) <= set(self._files.segments.all)

    def begin_cleaned(self, base_offset: int) -> OpenFile:
        """Make the `.log.cleaned` file of a segment, whatever was there."""
        with self._lock:  # so that it is not made in a directory that was moved away
            self._check_open()
            segment = Segment(self.directory, base_offset)
            path = segment.path(FileKind.LOG, Working.CLEANED)
            with self.disk.doing(f"cleaning {self.name}"):
                return OpenFile(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def replace(self, old: tuple[Segment, ...], new: Segment) -> bool:
        """Put a cleaned segment, whose files are flushed, in the place of closed ones that follow
        each other; False where one of these is no longer there. In any thread."""
        with self._upkeep:
            with self._lock:
                self._check_open()
                closed = self._files.segments.closed
                if old[0] not in closed:
                    return False
                at = closed.index(old[0])
                if closed[at : at + len(old)] != old:
                    return False
            due = self._clock() + self.config.file_delete_delay_ms
            self._files.swap(old, new, due, self._lock)
            return True

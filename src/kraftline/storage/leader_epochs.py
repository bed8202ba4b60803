"""Which leader epoch wrote which offsets: `leader-epoch-checkpoint`, kept as Kafka keeps it."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable

from kraftline.storage.checkpoints import (
    LEADER_EPOCHS,
    EpochStart,
    format_leader_epochs,
)
from kraftline.storage.files import write_if_other


class LeaderEpochs:
    """Epochs and their first offsets, both rising. Changes reach the disk with `write`.

    `latest` is the newest epoch, None where none is known.
    """

    __slots__ = ("_entries", "latest")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries: list[EpochStart] = []
        self.latest: int | None = None
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """An epoch starts here; whether that is news. Entries that contradict this one go: they
        wrote nothing."""
        last = self._entries[-1] if self._entries else None
        if last is not None and last.epoch == epoch and last.start_offset <= start_offset:
            return False
        while self._entries and (
            self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch
        return True

    def cut_end(self, end_offset: int) -> None:
        """Forget epochs that start at or after the end of the log."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        self.latest = self._entries[-1].epoch if self._entries else None

    def cut_start(self, start_offset: int) -> None:
        """Forget epochs that ended before the log's start; the one there now starts with it."""
        before = [entry for entry in self._entries if entry.start_offset <= start_offset]
        if before:
            first = EpochStart(before[-1].epoch, start_offset)
            self._entries[: len(before)] = [first]

    def epoch_of(self, offset: int) -> int | None:
        """The epoch that wrote an offset; None before the first that is known."""
        slot = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset) - 1
        return None if slot < 0 else self._entries[slot].epoch

    def end_offset_of(self, epoch: int, log_end: int) -> EpochStart | None:
        """The largest known epoch up to the one asked for, and where the next one starts (the
        log's end for the latest). Before all that is known, the epoch asked for and where the
        first known one starts. None where nothing can be said."""
        if not self._entries or epoch < 0:
            return None
        if epoch == self.latest:
            return EpochStart(epoch, log_end)
        slot = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if slot == len(self._entries):
            return None
        known = self._entries[slot - 1].epoch if slot else epoch
        return EpochStart(known, self._entries[slot].start_offset)

    def write(self, directory: str) -> None:
        path = os.path.join(directory, LEADER_EPOCHS)
        write_if_other(path, format_leader_epochs(self._entries))

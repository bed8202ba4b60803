"""Which leader epoch wrote which offsets: `leader-epoch-checkpoint`, kept as Kafka keeps it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kraftline.storage.checkpoints import (
    LEADER_EPOCHS,
    EpochStart,
    format_leader_epochs,
)
from kraftline.storage.segment_append import write_if_other


class LeaderEpochs:
    """Epochs and their first offsets, both rising. Changes reach the disk with `write`."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries: list[EpochStart] = []
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int | None:
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch starts here. Entries that contradict this one go: they wrote nothing."""
        last = self._entries[-1] if self._entries else None
        if last is not None and last.epoch == epoch and last.start_offset <= start_offset:
            return
        while self._entries and (
            self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))

    def cut_end(self, end_offset: int) -> None:
        """Forget epochs that start at or after the end of the log."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()

    def cut_start(self, start_offset: int) -> None:
        """Forget epochs that ended before the log's start; the one there now starts with it."""
        before = [entry for entry in self._entries if entry.start_offset <= start_offset]
        if before:
            first = EpochStart(before[-1].epoch, start_offset)
            self._entries[: len(before)] = [first]

    def epoch_of(self, offset: int) -> int | None:
        """The epoch that wrote an offset; None before the first that is known."""
        found = [entry.epoch for entry in self._entries if entry.start_offset <= offset]
        return found[-1] if found else None

    def write(self, directory: str) -> None:
        path = os.path.join(directory, LEADER_EPOCHS)
        write_if_other(path, format_leader_epochs(self._entries))

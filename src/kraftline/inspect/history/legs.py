"""Which offsets can be answered for: legs of the log that are whole, each from a base on.

The first leg begins at the oldest base: the log's own start, else a snapshot. A gap ends it, and
the next snapshot behind the gap begins another.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec

from kraftline.errors import BadData, KraftlineError
from kraftline.inspect.history.batches import Batch
from kraftline.inspect.history.files import Snapshot
from kraftline.inspect.history.trouble import OnTrouble, Trouble
from kraftline.storage.snapshot_file import SnapshotReader


class Base(msgspec.Struct, frozen=True):
    """A snapshot that was found whole; `time` is of the last record in it."""

    snapshot: Snapshot
    time: int


class Leg(msgspec.Struct, frozen=True):
    """Batches without a gap, after a base. None: from nothing, which is all there is to know if
    the log begins at 0 and else leaves out what came before (`complete` is False then).

    `times` are of the batches: the newest time so far, so that they never go back.
    """

    base: Base | None
    batches: Sequence[Batch]
    times: Sequence[int]
    complete: bool = True

    @property
    def first_offset(self) -> int:
        """The first offset that can be answered for; -1 for a snapshot that names none."""
        if self.base is not None:
            return self.base.snapshot.id.end_offset - 1
        return self.batches[0].base_offset

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else self.first_offset

    @property
    def first_time(self) -> int:
        return self.base.time if self.base is not None else self.times[0]

    @property
    def last_time(self) -> int:
        return self.times[-1] if self.times else self.first_time

    def batch_at(self, offset: int) -> int:
        """The number of the batch with the offset, or of the first one behind it."""
        return bisect_left(self.batches, offset, key=lambda batch: batch.last_offset)

    def file_at(self, offset: int) -> str | None:
        at = self.batch_at(offset)
        return self.batches[at].file if at < len(self.batches) else None

    def time_at(self, offset: int) -> int:
        at = self.batch_at(offset)
        if not self.batches or offset < self.batches[0].base_offset:
            return self.first_time
        return self.times[min(at, len(self.times) - 1)]

    def offset_at(self, time: int) -> int:
        """The last offset that had taken effect at a time of this leg."""
        at = bisect_right(self.times, time)
        return self.batches[at - 1].last_offset if at else self.first_offset


def find_legs(
    batches: list[Batch],
    snapshots: Sequence[Snapshot],
    check: Callable[[Snapshot], Base | None],
) -> list[Leg]:
    """The legs in the order of the log. `check` gives None for a snapshot that is not whole."""
    stretches = _stretches(batches)
    by_end = sorted(snapshots, key=lambda each: each.id)
    if stretches or (by_end and by_end[-1].id.end_offset):
        # What formatting left comes before the log, and says nothing of any offset of it.
        by_end = [each for each in by_end if each.id.end_offset]
    legs: list[Leg] = []
    reached = -1  # what lies below is answered for
    if stretches and stretches[0][0].base_offset == 0:
        legs.append(_leg(None, stretches[0]))
        reached = legs[-1].last_offset + 1
    for snapshot in by_end:
        end = snapshot.id.end_offset
        # Only behind a gap: whoever follows the log needs no snapshot.
        if end <= reached:
            continue
        base = check(snapshot)
        if base is None:
            continue
        inside = next((s for s in stretches if s[0].base_offset <= end <= s[-1].last_offset), [])
        at = bisect_left(inside, end, key=lambda batch: batch.base_offset)
        # One that ends inside a batch is no base for what follows.
        follows = at < len(inside) and inside[at].base_offset == end
        legs.append(_leg(base, inside[at:] if follows else []))
        reached = max(end, legs[-1].last_offset + 1)
    if not legs and stretches:
        legs.append(_leg(None, stretches[0], complete=False))
    return legs


def _leg(base: Base | None, batches: Sequence[Batch], *, complete: bool = True) -> Leg:
    floor = -1 if base is None else base.time
    times = list(accumulate((batch.time for batch in batches), max, initial=floor))[1:]
    return Leg(base, batches, times, complete)


def _stretches(batches: list[Batch]) -> list[list[Batch]]:
    cuts = [
        at
        for at in range(1, len(batches))
        if batches[at].base_offset != batches[at - 1].last_offset + 1
    ]
    if not cuts:
        return [batches] if batches else []
    return [batches[a:b] for a, b in zip([0, *cuts], [*cuts, len(batches)], strict=True)]


def check_snapshot(snapshot: Snapshot, trouble: OnTrouble) -> Base | None:
    """The snapshot as a base; None, told to `trouble`, if it is not whole."""
    try:
        with SnapshotReader(snapshot.path) as reader:
            for _ in reader.batches():
                pass
            return Base(snapshot, reader.header.last_contained_log_timestamp)
    except BadData as error:
        trouble(
            Trouble(f"the snapshot is passed over: {error.reason}", snapshot.path, error.position)
        )
    except KraftlineError as error:
        trouble(Trouble(f"the snapshot is passed over: {error}", snapshot.path))
    return None

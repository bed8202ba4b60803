"""A history: opened from paths, asked for images at moments and for the units between them."""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kraftline.errors import NotKafka
from kraftline.inspect.history import batches as headers
from kraftline.inspect.history.batches import Batch
from kraftline.inspect.history.decoding import Progress, decode, read_records
from kraftline.inspect.history.files import Snapshot, find_copies
from kraftline.inspect.history.legs import Base, Leg, check_snapshot, find_legs
from kraftline.inspect.history.moments import Moment, locate, show_range
from kraftline.inspect.history.transactions import Replay
from kraftline.inspect.history.trouble import Trouble, Unanswerable
from kraftline.inspect.history.units import Unit, read_units
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.storage.snapshot_file import SnapshotReader


class History:
    """`legs` say which offsets it can answer for, in order; the last leg is the newest.

    `trouble` collects all that is wrong, from opening and from every question since.
    """

    def __init__(
        self, legs: list[Leg], snapshots: Sequence[Snapshot], trouble: list[Trouble]
    ) -> None:
        self.legs = legs
        self.trouble = trouble
        self._snapshots = sorted(snapshots, key=lambda each: each.id)
        self._checked: dict[Snapshot, Base | None] = {}
        # Whoever wants to hear how a replay gets on.
        self.progress: Progress | None = None

    @property
    def committed_below(self) -> int | None:
        """What lies below is committed, since a snapshot holds it; above, nobody can tell."""
        return self._snapshots[-1].id.end_offset if self._snapshots else None

    @property
    def size(self) -> int:
        """The bytes of the log that can be replayed."""
        return sum(batch.size for leg in self.legs for batch in leg.batches)

    @property
    def range(self) -> str:
        """What it can answer for, in words."""
        return show_range(self.legs)

    def gaps(self) -> list[tuple[int, int]]:
        """Offsets that are missing between what can be answered for: (first, last)."""
        return [
            (before.last_offset + 1, after.first_offset - 1)
            for before, after in zip(self.legs, self.legs[1:], strict=False)
        ]

    def find(self, moment: Moment | None) -> tuple[Leg, int]:
        """The leg and the offset of a moment, None being the newest; else Unanswerable."""
        if not self.legs:
            raise Unanswerable("there is not one whole batch or snapshot in it")
        if moment is None:
            return self.legs[-1], self.legs[-1].last_offset
        return locate(moment, self.legs)

    def time_of(self, offset: int) -> int:
        for leg in self.legs:
            if leg.first_offset <= offset <= leg.last_offset:
                return leg.time_at(offset)
        return -1

    def image(self, moment: Moment | None = None, *, quick: bool = False) -> MetadataImage:
        """The state at a moment. `quick`: from the newest snapshot before it, as a restarting
        node would, which repeats what may be wrong in that snapshot."""
        leg, offset = self.find(moment)
        return self.at(leg, offset, quick=quick)

    def at(self, leg: Leg, offset: int, *, quick: bool = False) -> MetadataImage:
        base, start = self._newest(leg, offset) if quick else (leg.base, 0)
        return self._images(self.base_image(base), leg, [offset], start)[0]

    def in_order(self, leg: Leg, offsets: Sequence[int]) -> list[MetadataImage]:
        """The images at rising offsets of one leg, in one reading."""
        return self._images(self.base_image(leg.base), leg, offsets, 0)

    def resume(self, leg: Leg, offset: int) -> tuple[MetadataImage, int, int]:
        """The state before the batch with an offset, and from where units go on after it: the
        number of the batch, and the first offset. A transaction that is open there is begun anew,
        since none of it has taken effect."""
        start = leg.batch_at(offset)
        if start == 0:
            return self.base_image(leg.base), 0, 0
        with _no_collecting():
            replay = Replay(MetadataDelta(self.base_image(leg.base)), self.trouble.append)
            for records in read_records(leg.batches[:start], self.trouble.append, self.progress):
                replay.take(records)
            image = replay.publish(self.provenance(leg, leg.batches[start - 1].last_offset))
        if replay.open is None:
            return image, start, 0
        return image, leg.batch_at(replay.open.offset), replay.open.offset

    def _images(
        self, image: MetadataImage, leg: Leg, offsets: Sequence[int], start: int
    ) -> list[MetadataImage]:
        stop = min(leg.batch_at(offsets[-1]) + 1, len(leg.batches))
        left = list(offsets)
        out: list[MetadataImage] = []
        with _no_collecting():
            replay = Replay(MetadataDelta(image), self.trouble.append)
            for records in read_records(
                leg.batches[start:stop], self.trouble.append, self.progress
            ):
                at = 0
                while left and records and records[-1].offset > left[0]:
                    upto = bisect_right(records, left[0], key=lambda record: record.offset)
                    replay.take(records[at:upto])
                    out.append(replay.publish(self.provenance(leg, left.pop(0))))
                    at = upto
                replay.take(records[at:] if at else records)
            out += [replay.publish(self.provenance(leg, offset)) for offset in left]
        return out

    def provenance(self, leg: Leg, offset: int) -> Provenance:
        if not leg.batches or offset < leg.batches[0].base_offset:
            epoch = -1 if leg.base is None else leg.base.snapshot.id.epoch
            last = -1 if leg.base is None else leg.base.snapshot.id.end_offset - 1
            return Provenance(last, epoch, leg.first_time, True)
        at = min(leg.batch_at(offset), len(leg.batches) - 1)
        batch = leg.batches[at]
        return Provenance(offset, batch.epoch, leg.times[at], batch.last_offset == offset)

    def base_image(self, base: Base | None, before: MetadataImage = EMPTY) -> MetadataImage:
        """What a snapshot holds; what it does not name of the image before ends there."""
        if base is None:
            return EMPTY
        delta = MetadataDelta(before)
        snapshot = base.snapshot
        with _no_collecting(), SnapshotReader(snapshot.path) as reader:
            replay = Replay(delta, self.trouble.append)
            for batch in reader.batches():
                replay.take(decode(bytes(batch.data), self.trouble.append, file=snapshot.path))
            delta.finish_snapshot()
            end = snapshot.id.end_offset - 1
            return delta.apply(Provenance(end, snapshot.id.epoch, base.time, True))

    def units(self, leg: Leg, start: int, until: int, first: int = 0) -> Iterator[Unit]:
        """The units of a leg from batch number `start` on, up to an offset; records before
        `first` are left out."""
        stop = min(leg.batch_at(until) + 1, len(leg.batches))
        if start >= stop:
            return
        times = leg.times[start:stop]
        batches = leg.batches[start:stop]
        for unit in read_units(batches, times, self.trouble.append, self.progress):
            batch = unit.batch
            if unit.ends_at is not None:
                if unit.ends_at <= until:
                    yield unit
            elif batch.last_offset <= until and first <= batch.base_offset:
                yield unit
            else:
                kept = [record for record in unit.records if first <= record.offset <= until]
                if kept or unit.dropped is not None:
                    yield unit._replace(records=kept)

    def _newest(self, leg: Leg, offset: int) -> tuple[Base | None, int]:
        fitting = bisect_right(self._snapshots, offset + 1, key=lambda each: each.id.end_offset)
        for snapshot in reversed(self._snapshots[:fitting]):
            if snapshot.id.end_offset <= leg.first_offset:
                break
            base = self._check(snapshot)
            if base is not None:
                end = snapshot.id.end_offset
                return base, bisect_right(leg.batches, end - 1, key=lambda b: b.last_offset)
        return leg.base, 0

    def _check(self, snapshot: Snapshot) -> Base | None:
        if snapshot not in self._checked:
            self._checked[snapshot] = check_snapshot(snapshot, self.trouble.append)
        return self._checked[snapshot]


def open_history(paths: Sequence[str], progress: Callable[[int], None] | None = None) -> History:
    """Read the headers of all that lies behind the paths: metadata or log directories, of one
    node or several, segments, snapshots. NotKafka where there is nothing to replay."""
    trouble: list[Trouble] = []
    copies = find_copies(paths)
    read: list[list[Batch]] = [
        headers.read_headers(copy, trouble.append, progress) for copy in copies
    ]
    merged = headers.merge(read, [copy.path for copy in copies], trouble.append)
    by_id = {s.id: s for copy in reversed(copies) for s in copy.snapshots}
    history = History([], list(by_id.values()), trouble)
    history.legs = find_legs(merged, list(by_id.values()), history._check)
    if not history.legs:
        why = f": {trouble[0]}" if trouble else ""
        raise NotKafka(f"{', '.join(paths)}: no whole batch and no whole snapshot in it{why}")
    _tell_of_gaps(history, merged)
    return history


def _tell_of_gaps(history: History, batches: list[Batch]) -> None:
    for first, last in history.gaps():
        if last >= first:
            history.trouble.append(
                Trouble(
                    f"offsets {first} to {last} are missing from the log; the snapshot behind them "
                    "tells how they ended, not how it went",
                    harmless=True,
                )
            )
    newest = history.legs[-1]
    if not newest.complete:
        history.trouble.append(
            Trouble(
                f"the log begins at offset {newest.first_offset} and no snapshot tells what was "
                "before: whatever was set up earlier is missing from this answer"
            )
        )
    if batches and batches[-1].last_offset > newest.last_offset:
        behind = next(b for b in batches if b.base_offset > newest.last_offset)
        history.trouble.append(
            Trouble(
                f"offsets {newest.last_offset + 1} to {behind.base_offset - 1} are missing, and no "
                f"snapshot bridges that: nothing can be said of offsets {behind.base_offset} to "
                f"{batches[-1].last_offset}"
            )
        )


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Images make no cycles; looking for some takes a third of a large replay."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

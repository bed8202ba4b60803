"""A history: opened from paths, asked for images at moments and for what happened in between."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from kraftline.errors import BadData, KraftlineError, NotKafka
from kraftline.inspect.history import batches as headers
from kraftline.inspect.history.batches import Batch, Progress
from kraftline.inspect.history.files import Snapshot, find_copies
from kraftline.inspect.history.legs import Base, Leg, check_snapshot, find_legs
from kraftline.inspect.history.moments import Moment, locate, show_range
from kraftline.inspect.history.quorum import Quorum, after_controls, snapshot_quorum
from kraftline.inspect.history.reading import read_batches
from kraftline.inspect.history.trouble import Trouble, TroubleFaults, Unanswerable, name_of
from kraftline.metadata.image import EMPTY, MetadataImage, Provenance
from kraftline.metadata.loader import (
    Effect,
    FaultHandler,
    MetadataBatch,
    Replay,
    Transaction,
    effects,
    images_at,
    part_of,
    without_collector,
)
from kraftline.storage.snapshot_file import SnapshotReader


class History:
    """`legs` say which offsets it can answer for, in order; the last leg is the newest.

    `trouble` collects all that is wrong, from opening and from every question since.
    """

    def __init__(
        self,
        legs: list[Leg],
        snapshots: Sequence[Snapshot],
        trouble: list[Trouble],
        formatted: Snapshot | None = None,
    ) -> None:
        self.legs = legs
        self.trouble = trouble
        self._formatted = formatted
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
        return self.in_order(leg, [offset], quick=quick)[0]

    def in_order(
        self, leg: Leg, offsets: Sequence[int], *, quick: bool = False
    ) -> list[MetadataImage]:
        """The images at rising offsets of one leg, in one reading."""
        images, opened = self.reach(leg, offsets, quick=quick)
        if opened is not None:
            reason = f"{name_of(opened)} is open there: none of its records counts"
            self.trouble.append(Trouble(reason, offset=offsets[-1], harmless=True))
        return images

    def reach(
        self, leg: Leg, offsets: Sequence[int], *, quick: bool = False
    ) -> tuple[list[MetadataImage], Transaction | None]:
        """The images at rising offsets, and the transaction that is open at the last one."""
        base, first = self.start(leg, offsets[0], quick=quick)
        with without_collector():
            replay = Replay(self.base_image(base), faults=self.faults(leg), lazily=True)
            found = images_at(replay, self._batches(leg, first, offsets[-1]), offsets)
            images = [
                msgspec.structs.replace(image, provenance=self.provenance(leg, offset))
                for image, offset in zip(found, offsets, strict=True)
            ]
        return images, replay.transaction

    def quorum(self, leg: Leg, offset: int) -> Quorum:
        """kraft.version and voters once the record at the offset has taken effect."""
        found, base = Quorum(), None if leg.base is None else leg.base.snapshot
        if base is None or not base.id.end_offset:
            base = self._formatted or base
        if base is not None:
            try:
                found = snapshot_quorum(base.path)
            except KraftlineError as error:
                self.trouble.append(Trouble(f"its voters cannot be read: {error}", base.path))
        controls = [each for each in leg.batches if each.is_control and each.base_offset <= offset]
        return after_controls(found, read_batches(controls, self.trouble.append), offset)

    def start(self, leg: Leg, offset: int, *, quick: bool = False) -> tuple[Base | None, int]:
        """Where a replay to an offset begins: a base, and the first offset behind it."""
        if quick:
            fitting = bisect_right(self._snapshots, offset + 1, key=lambda each: each.id.end_offset)
            for snapshot in reversed(self._snapshots[:fitting]):
                if snapshot.id.end_offset <= leg.first_offset:
                    break
                base = self._check(snapshot)
                if base is not None:
                    return base, snapshot.id.end_offset
        return leg.base, leg.batches[0].base_offset if leg.batches else leg.last_offset + 1

    def resume(self, leg: Leg, offset: int, *, quick: bool = False) -> tuple[MetadataImage, int]:
        """The state before the batch with an offset, and from where effects go on. A transaction
        that is open there is begun anew, since none of it has taken effect."""
        start = leg.batch_at(offset)
        if start == 0:
            return self.base_image(leg.base), leg.batches[0].base_offset
        last = leg.batches[start - 1].last_offset
        (image,), opened = self.reach(leg, [last], quick=quick)
        return image, last + 1 if opened is None else opened.begin

    def effects(self, leg: Leg, first: int, last: int) -> Iterator[tuple[Effect, int]]:
        """What took effect from one offset to another, and when."""
        time = leg.time_at(first)
        for effect in effects(self._batches(leg, first, last), self.faults(leg)):
            time = max(time, effect.batch.append_timestamp)
            yield effect, time

    def faults(self, leg: Leg) -> FaultHandler:
        """Who takes the faults of replaying a leg."""
        return TroubleFaults(self.trouble.append, leg.file_at)

    def _batches(self, leg: Leg, first: int, last: int) -> Iterator[MetadataBatch]:
        found = leg.batches[leg.batch_at(first) : leg.batch_at(last) + 1]
        for batch in read_batches(found, self.trouble.append, self.progress):
            yield part_of(batch, first, last)

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
        path = base.snapshot.path
        replay = Replay(before, faults=TroubleFaults(self.trouble.append, lambda _: path))
        with without_collector(), SnapshotReader(path) as reader:
            try:
                replay.load_snapshot(reader)
            except BadData as error:
                reason = f"the snapshot cannot be read, so what it holds is missing: {error.reason}"
                self.trouble.append(Trouble(reason, path, error.position))
        return replay.image

    def _check(self, snapshot: Snapshot) -> Base | None:
        if snapshot not in self._checked:
            self._checked[snapshot] = check_snapshot(snapshot, self.trouble.append)
        return self._checked[snapshot]


def open_history(paths: Sequence[str], progress: Progress | None = None) -> History:
    """Read the headers of all that lies behind the paths: metadata or log directories, of one
    node or several, segments, snapshots. NotKafka where there is nothing to replay."""
    trouble: list[Trouble] = []
    copies = find_copies(paths)
    read: list[list[Batch]] = [
        headers.read_headers(copy, trouble.append, progress) for copy in copies
    ]
    merged = headers.merge(read, [copy.path for copy in copies], trouble.append)
    by_id = {s.id: s for copy in reversed(copies) for s in copy.snapshots}
    formatted = next((copy.formatted for copy in copies if copy.formatted is not None), None)
    history = History([], list(by_id.values()), trouble, formatted)
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

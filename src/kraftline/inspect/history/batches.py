"""The batches of a metadata log by their headers: which offsets there are, from when, and where.

Checksums are compared here, so that what is replayed later is sound, and a damaged batch is a gap
that a snapshot or another node's copy may bridge.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import google_crc32c

from kraftline.errors import KraftlineError
from kraftline.inspect.history.files import Copy
from kraftline.inspect.history.trouble import OnTrouble, Trouble, of_damage
from kraftline.records.framing import as_view
from kraftline.records.kernel import active as kernel
from kraftline.storage.segment import Run, SegmentReader, TailKind

# Told how many bytes more were done.
Progress: TypeAlias = Callable[[int], None]
_CONTROL = 0x20
_ROWS = 1024


class Batch(NamedTuple):
    """`time` is the newest of its records, in ms."""

    base_offset: int
    last_offset: int
    epoch: int
    time: int
    is_control: bool
    crc: int
    position: int
    size: int
    file: str


def read_headers(copy: Copy, trouble: OnTrouble, progress: Progress | None = None) -> list[Batch]:
    """Every sound batch of a copy in the order of offsets; what is not sound goes to `trouble`."""
    found: list[Batch] = []
    expected = 0
    for path in copy.segments:
        try:
            for batch in sound_batches(path, trouble, progress):
                offset = batch.base_offset
                if offset >= expected:
                    found.append(batch)
                    expected = batch.last_offset + 1
                else:
                    reason = f"a batch from offset {offset} on, where {expected} was next"
                    trouble(Trouble(reason, path, batch.position, offset))
        except KraftlineError as error:
            trouble(Trouble(str(error).removeprefix(f"{path}: "), path))
    return found


def sound_batches(
    path: str, trouble: OnTrouble, progress: Progress | None = None
) -> Iterator[Batch]:
    """The batches of a segment whose checksums are right; `progress` hears of the bytes done."""
    with SegmentReader(path, on_damage=lambda damage: trouble(of_damage(damage))) as reader:
        for run in reader.runs():
            yield from _read(run, path, trouble)
            if progress is not None:
                progress(run.end - run.start)
        tail = reader.tail
        if tail is not None and tail.kind is TailKind.PARTIAL:
            reason = (
                f"the last {tail.length} bytes are of a batch that is not all there: it is being "
                "written, or was when the node stopped"
            )
            trouble(Trouble(reason, path, tail.position, harmless=True))


def _read(run: Run, path: str, trouble: OnTrouble) -> Iterator[Batch]:
    view, at = as_view(run.buffer), run.start
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    base = run.position - run.start
    checksum = google_crc32c.value
    while at < run.end:
        rows, at, _ = kernel.scan(view, at, run.end, base, table)
        if not rows:
            return
        for t in range(0, rows * kernel.STRIDE, kernel.STRIDE):
            position, size, offset, crc = table[t], table[t + 1], table[t + 5], table[t + 15]
            start = position - base
            if table[t + 2] != 2:
                reason = f"a batch of format {table[t + 2]}, which no metadata log has"
            elif checksum(bytes(view[start + 21 : start + size])) != crc & 0xFFFFFFFF:
                reason = "the checksum of a batch is wrong"
            else:
                is_control = bool(table[t + 3] & _CONTROL)
                last, epoch, time = offset + table[t + 14], table[t + 11], table[t + 7]
                yield Batch(offset, last, epoch, time, is_control, crc, position, size, path)
                continue
            trouble(Trouble(reason, path, position, offset))


def merge(copies: list[list[Batch]], names: list[str], trouble: OnTrouble) -> list[Batch]:
    """One log out of several copies: where they differ the higher leader epoch wins, as it did in
    the cluster, and the other is told of once for each stretch."""
    if len(copies) == 1:
        return copies[0]
    out: list[Batch] = []
    places = [0] * len(copies)
    differing: dict[int, Batch] = {}
    expected = epoch = 0
    while True:
        ahead = []
        for number, batches in enumerate(copies):
            at = places[number]
            # An older epoch behind a newer one was cut off in the cluster.
            while at < len(batches) and (
                batches[at].base_offset < expected or batches[at].epoch < epoch
            ):
                if batches[at].epoch < epoch and batches[at].last_offset >= expected:
                    differing.setdefault(number, batches[at])
                at += 1
            places[number] = at
            if at < len(batches):
                ahead.append(number)
        if not ahead:
            break
        first = min(copies[number][places[number]].base_offset for number in ahead)
        here = [n for n in ahead if copies[n][places[n]].base_offset == first]
        best = max(here, key=lambda n: copies[n][places[n]].epoch)
        chosen = copies[best][places[best]]
        for number in here:
            other = copies[number][places[number]]
            if (other.epoch, other.crc) != (chosen.epoch, chosen.crc):
                differing.setdefault(number, other)
            elif number in differing:
                _tell(differing.pop(number), names[number], first, trouble)
        out.append(chosen)
        expected, epoch = chosen.last_offset + 1, chosen.epoch
    for number, batch in differing.items():
        _tell(batch, names[number], None, trouble)
    return out


def _tell(batch: Batch, name: str, until: int | None, trouble: OnTrouble) -> None:
    rest = "its end" if until is None else f"offset {until - 1}"
    trouble(
        Trouble(
            f"{name} differs from the other copies from offset {batch.base_offset} (leader epoch "
            f"{batch.epoch}) to {rest}: the copy with the higher leader epoch counts",
            batch.file,
            batch.position,
            batch.base_offset,
        )
    )

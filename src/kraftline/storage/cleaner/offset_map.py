"""From keys to the last offset that has each of them, in a limited memory.

Of a key only a hash of 128 bits is kept, as Kafka does: 24 bytes a key. The memory is taken while
a log is cleaned, as keys come (a quarter more for the moment of growing), and given back
afterwards: a small map is not only polite, it is in the processor's caches.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from array import array
from typing import Final

from kraftline.records.kernel import active as records_kernel
from kraftline.records.runs import Group, Run
from kraftline.storage.cleaner.kernel import active as kernel

SLOT: Final = 24
_LEAST: Final = 4096
_GROWTH: Final = 4
_LARGE: Final = 8 * 1024 * 1024  # large pages are worth it from here on


class OffsetMap:
    """At most `most` keys, which is `load_factor` of what the memory holds.

    `latest` is the offset up to which every key has been noted, `is_full` that there was no room
    for the next one.
    """

    def __init__(self, memory: int, load_factor: float) -> None:
        self.capacity = memory // SLOT
        self.most = int(self.capacity * load_factor)
        self.latest = -1
        self.is_full = False
        self._seed = array("q", os.urandom(16))
        self._slots = _memory(0)
        self._state = array("q", (0, -1, 0))
        self._scratch = array("q", bytes(8 * kernel.SCRATCH))

    def __len__(self) -> int:
        return int(self._state[kernel.ENTRIES])

    @property
    def utilization(self) -> float:
        return len(self) / self.capacity if self.capacity else 0.0

    def clear(self) -> None:
        """Begin again."""
        self._slots = _memory(min(self.capacity, _LEAST))
        self._seed = array("q", os.urandom(16))
        self._state = array("q", (0, -1, 0))
        self.latest = -1
        self.is_full = False

    def release(self) -> None:
        """Give the memory back; what was counted stays."""
        self._slots = _memory(0)

    def note(self, run: Run, group: Group, wanted: bytes | bytearray, start: int) -> int:
        """Note the keys of the group's batches that are wanted (one byte for each of the run's),
        from an offset on; how many batches were noted to their end."""
        self._state[kernel.LATEST] = self.latest
        first: int = group.first
        while True:
            slots = len(self._slots) // 3
            first += kernel.note(
                group.source,
                run.table,
                first,
                group.last,
                wanted,
                start,
                self._slots,
                self.most,
                slots // 2 if slots < self.capacity else -1,
                self._seed,
                self._state,
                self._scratch,
            )
            self.is_full = bool(self._state[kernel.IS_FULL])
            if self.is_full or first == group.last:
                break
            self._grow(run.table[first * records_kernel.STRIDE + records_kernel.COUNT])
        self.latest = self._state[kernel.LATEST]
        return first - group.first

    def _grow(self, more: int) -> None:
        """Make room for so many keys more, in comfort where the memory allows."""
        wanted = max(_GROWTH * len(self._slots) // 3, 2 * (len(self) + more))
        larger = _memory(min(self.capacity, wanted))
        kernel.rehash(self._slots, larger, self._scratch)
        self._slots = larger

    def judge(self, run: Run, group: Group, how: bytes | bytearray, verdict: Verdict) -> None:
        """Which records of the group's batches stay."""
        verdict.records = kernel.judge(
            group.source,
            run.table,
            group.first,
            group.last,
            how,
            self._slots,
            self.latest,
            self._seed,
            verdict.keep,
            verdict.records,
            verdict.found,
            self._scratch,
        )


def _memory(slots: int) -> memoryview:
    """So many slots, all free: pages of their own, which nobody has to fill with zeros while other
    threads wait, and which the system has back at once."""
    if not slots:
        return memoryview(b"").cast("q")
    pages = mmap.mmap(-1, SLOT * slots)
    if SLOT * slots >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # not every system has them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages).cast("q")


class Verdict:
    """Of a run: `keep` has a 1 for each record that stays, `found` the kernel's FOUND numbers for
    each batch."""

    __slots__ = ("found", "keep", "records")

    def __init__(self, run: Run) -> None:
        rows = len(run.table) // records_kernel.STRIDE
        self.keep = bytearray(run.records)
        self.found = array("q", bytes(8 * kernel.FOUND * rows))
        self.records = 0

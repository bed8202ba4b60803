"""From keys to the last offset that has each of them, in a limited memory.

Of a key only a hash of 128 bits is kept, as Kafka does: 24 bytes a key. The memory is taken when
a log is cleaned, no more than its dirty part can need, and given back afterwards.
"""

from __future__ import annotations

import os
from array import array
from typing import Final

from kraftline.records.kernel import active as records_kernel
from kraftline.records.runs import Group, Run
from kraftline.storage.cleaner.kernel import active as kernel

SLOT: Final = 24
_LEAST: Final = 1024


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
        self._slots = array("q")
        self._state = array("q", (0, -1))
        self._hash = array("q", (0, 0))

    def __len__(self) -> int:
        return int(self._state[kernel.ENTRIES])

    @property
    def utilization(self) -> float:
        return len(self) / self.capacity if self.capacity else 0.0

    def clear(self, keys: int) -> None:
        """Begin again, with room for so many keys, or as many as the memory holds."""
        slots = min(self.capacity, max(2 * keys, _LEAST))
        self._slots = array("q", bytes(SLOT * slots))
        self._seed = array("q", os.urandom(16))
        self._state = array("q", (0, -1))
        self.latest = -1
        self.is_full = False

    def release(self) -> None:
        """Give the memory back; what was counted stays."""
        self._slots = array("q")

    def note(self, run: Run, group: Group, wanted: bytes | bytearray, start: int) -> int:
        """Note the keys of the group's batches that are wanted (one byte for each of the run's),
        from an offset on; how many batches were noted to their end."""
        self._state[kernel.LATEST] = self.latest
        done: int = kernel.note(
            group.source,
            run.table,
            group.first,
            group.last,
            wanted,
            start,
            self._slots,
            self.most,
            self._seed,
            self._state,
            self._hash,
        )
        self.latest = self._state[kernel.LATEST]
        self.is_full = done < group.last - group.first
        return done

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
            self._hash,
        )


class Verdict:
    """Of a run: `keep` has a 1 for each record that stays, `found` the kernel's FOUND numbers for
    each batch."""

    __slots__ = ("found", "keep", "records")

    def __init__(self, run: Run) -> None:
        rows = len(run.table) // records_kernel.STRIDE
        self.keep = bytearray(run.records)
        self.found = array("q", bytes(8 * kernel.FOUND * rows))
        self.records = 0

"""The segments of a log as readers see them: a list that is never changed, only replaced.

So a reader searches one consistent list, whatever is rolled or deleted meanwhile.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable

from kraftline.storage.log.segment import Segment


class Segments:
    """Segments by rising base offset; the last one is appended to."""

    __slots__ = ("_bases", "active", "all", "closed_size")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.all = tuple(segments)
        self.active = self.all[-1]
        self._bases = [segment.base_offset for segment in self.all]
        self.closed_size = sum(segment.size for segment in self.all[:-1])

    @property
    def first(self) -> Segment:
        return self.all[0]

    @property
    def closed(self) -> tuple[Segment, ...]:
        return self.all[:-1]

    @property
    def size(self) -> int:
        return self.closed_size + self.active.size

    def of(self, offset: int) -> int:
        """The number of the segment that an offset is in; -1 before the first."""
        return bisect_right(self._bases, offset) - 1

    def following(self, segment: Segment) -> Segment | None:
        slot = self.of(segment.base_offset) + 1
        return self.all[slot] if slot < len(self.all) else None


class RecentlyRead:
    """Closed segments whose file and index are kept open, the `most` that were read last."""

    def __init__(self, most: int = 128) -> None:
        self.most = most
        self._kept: dict[Segment, None] = {}
        self._lock = threading.Lock()

    def forget(self, segment: Segment) -> None:
        with self._lock:
            self._kept.pop(segment, None)

    def touch(self, segment: Segment) -> None:
        oldest = None
        with self._lock:
            self._kept.pop(segment, None)
            if segment.is_replaced:
                return
            self._kept[segment] = None
            if len(self._kept) > self.most:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
        if oldest is not None:
            oldest.let_go()

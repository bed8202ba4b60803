"""Both indexes of a segment, built from its batches in order and kept in memory as columns.

An index gets an entry before a batch is added when more than `index.interval.bytes` have been
written since the last one. That is Kafka's rule when it appends (4.x: batch by batch) and when it
recovers a segment, so indexes built here are Kafka's byte for byte, unless a broker was stopped
in between (it forgets its count and notes the latest time at every close) or, before 4.0, a
follower appended several batches at once.
"""

from __future__ import annotations

from array import array

from kraftline.errors import NotRepresentable
from kraftline.storage.names import MAX_INT
from kraftline.storage.offset_index import OffsetIndex, encode_offset_index
from kraftline.storage.time_index import NO_TIMESTAMP, TimeEntry, TimeIndex, encode_time_index

INDEX_INTERVAL = 4096


class IndexBuilder:
    """`offsets` and `times` grow with every batch that is due for an entry.

    `latest` is the newest timestamp so far, with the last offset of the batch that has it.
    """

    __slots__ = (
        "_indexed",
        "base_offset",
        "interval",
        "newest",
        "newest_offset",
        "offsets",
        "times",
    )

    def __init__(self, base_offset: int, interval: int = INDEX_INTERVAL) -> None:
        self.base_offset = base_offset
        self.interval = interval
        self.offsets = OffsetIndex(base_offset, array("i"), array("i"))
        self.times = TimeIndex(base_offset, array("q"), array("i"))
        self.newest = NO_TIMESTAMP
        self.newest_offset = base_offset
        self._indexed = 0

    @property
    def latest(self) -> TimeEntry:
        return TimeEntry(self.newest, self.newest_offset)

    def add(self, position: int, last_offset: int, max_timestamp: int) -> None:
        """A batch was written at the position."""
        if not 0 <= last_offset - self.base_offset <= MAX_INT:
            raise NotRepresentable(
                f"offset {last_offset} is too far from the segment's base offset "
                f"{self.base_offset}: start a new segment"
            )
        if max_timestamp > self.newest:
            self.newest = max_timestamp
            self.newest_offset = last_offset
        if position - self._indexed > self.interval:
            self.offsets.relative_offsets.append(last_offset - self.base_offset)
            self.offsets.positions.append(position)
            self._note_time()
            self._indexed = position

    def resume(self, offsets: OffsetIndex, times: TimeIndex, position: int) -> None:
        """Go on with what a clean stop left, `position` bytes being written."""
        self.offsets = offsets
        self.times = times
        if times.timestamps:
            self.newest = times.timestamps[-1]
            self.newest_offset = self.base_offset + times.relative_offsets[-1]
        self._indexed = position

    def reopen(self, position: int) -> None:
        """What a broker's stop and start with `position` bytes written does to the indexes."""
        self._note_time()
        self._indexed = position

    def close(self) -> None:
        """A closed segment ends its time index with the latest time in it."""
        self._note_time()

    def offset_index(self) -> bytes:
        return encode_offset_index(self.offsets)

    def time_index(self) -> bytes:
        return encode_time_index(self.times)

    def _note_time(self) -> None:
        timestamps = self.times.timestamps
        if self.newest > (timestamps[-1] if timestamps else NO_TIMESTAMP):
            timestamps.append(self.newest)
            self.times.relative_offsets.append(self.newest_offset - self.base_offset)

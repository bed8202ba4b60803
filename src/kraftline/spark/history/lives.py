"""Times that a topic was there, and what a replay of its partitions wants to know of it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Span(Struct, frozen=True, array_like=True):
    """A value of min.insync.replicas, from an offset (included) to another (excluded, None: still);
    times are microseconds. `opened`: it was set before this build."""

    start: int
    end: int | None
    value: int
    start_time: int | None
    end_time: int | None
    opened: bool


class Life(Struct, kw_only=True):
    """From a Topic record, with which a topic has no partitions yet, to the next record of it.

    `next_*` is that record, a removal if `removed`; `ended_*` also tells of the snapshot that a
    later leg begins with. `configs` are those that the topic was created with.
    """

    topic_id: str
    topic: str
    leg: int
    offset: int
    index: int
    began_at: int
    began_time: int | None
    began_unit: int | None
    began_epoch: int | None
    opened: bool
    removed: bool = False
    next_offset: int | None = None
    next_index: int | None = None
    next_unit: int | None = None
    next_epoch: int | None = None
    ended_at: int | None = None
    ended_time: int | None = None
    min_isr: list[Span] = []
    configs: list[tuple[str, str | None]] = []

    @property
    def only_lasts(self) -> bool:
        """Was it there before this build, is it there still, and is it kept as it was?"""
        return self.opened and self.ended_at is None and not moments(self.min_isr)

    def holds(self, offset: int, index: int) -> bool:
        """Does what stands at that place of the log fall into this life?"""
        if (offset, index) < (self.offset, self.index):
            return False
        if self.next_offset is None or self.next_index is None:
            return True
        return (offset, index) < (self.next_offset, self.next_index)


class OverGap(Struct):
    """A topic on both sides of a gap, None where it is not there, and its configs behind it."""

    topic_id: str
    leg: int
    topic_was: str | None
    topic_now: str | None
    configs: list[tuple[str, str | None, bool]] = []


def value_at(spans: Iterable[Span], offset: int) -> int | None:
    """The value that held at an offset."""
    for span in spans:
        if span.start <= offset and (span.end is None or offset < span.end):
            return span.value
    return None


def moments(spans: Iterable[Span]) -> list[tuple[int, int | None]]:
    """When a value came or went since the last build: offsets and times."""
    found: dict[tuple[int, int | None], None] = {}
    for span in spans:
        if not span.opened:
            found[span.start, span.start_time] = None
        if span.end is not None:
            found[span.end, span.end_time] = None
    return list(found)


def stepped(spans: list[Span]) -> tuple[list[int], list[int | None]]:
    """Offsets at which the value may change, in order, and the values: one before the first
    offset, and one from each on."""
    ends = {span.end for span in spans if span.end is not None}
    offsets = sorted({span.start for span in spans} | ends)
    return offsets, [None, *(value_at(spans, offset) for offset in offsets)]

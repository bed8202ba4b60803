"""Leaderships and in-sync replicas that changed, counted per interval."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.report.tables import micros
from kraftline.report.window import Window

# What the bars say, and the kinds of change that each counts.
BARS = {
    "leader moved": ("leader.moved", "leader.elected"),
    "leader lost": ("leader.lost",),
    "unclean election": ("leader.unclean",),
    "replica fell out of sync": ("isr.shrank", "isr.changed"),
    "replica caught up": ("isr.grew",),
}
_MOST = 90


class Churn(Struct, frozen=True):
    """`counts` has a number per interval for each bar; intervals are `width` long."""

    starts: list[int]
    width: int
    counts: dict[str, list[int]]

    @property
    def totals(self) -> dict[str, int]:
        return {bar: sum(numbers) for bar, numbers in self.counts.items()}


def churn(changes: pa.Table, window: Window) -> Churn:
    width = window.width(_MOST)
    first = window.start // width
    count = max(1, -(-(window.end + 1) // width) - first)
    starts = [(first + i) * width for i in range(count)]
    times = micros(changes["time"])
    slot = pc.subtract(pc.divide(times, width), first)
    counts = {}
    for bar, kinds in BARS.items():
        inside = pc.and_(
            pc.is_in(changes["kind"], pa.array(kinds)),
            pc.and_(pc.greater_equal(times, window.start), pc.less_equal(times, window.end)),
        )
        found = (
            pa.table({"slot": slot.filter(inside)}).group_by("slot").aggregate([([], "count_all")])
        )
        numbers = [0] * count
        for at, number in zip(
            found["slot"].to_pylist(), found["count_all"].to_pylist(), strict=True
        ):
            numbers[at] = number
        counts[bar] = numbers
    return Churn(starts, width, counts)

"""Some batches of a run and not others, chosen by their headers before anything is decoded."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from kraftline.records.kernel import active as kernel
from kraftline.records.runs import Group, Run


def header_column(run: Run, field: int) -> array[int]:
    """One header field (a number of the kernel's table) of every batch that the run knows."""
    return run.table[field :: kernel.STRIDE]


def only(run: Run, wanted: Sequence[bool]) -> Run:
    """The run without the batches that are not wanted; one entry for each row of its table."""
    groups: list[Group] = []
    totals = array("q", bytes(8 * kernel.TOTALS))
    for source, first, last in run.groups:
        start = first
        while start < last:
            if not wanted[start]:
                start += 1
                continue
            end = start + 1
            while end < last and wanted[end]:
                end += 1
            kernel.measure(source, run.table, start, end, totals)
            groups.append(Group(source, start, end))
            start = end
    return Run(run.table, groups, totals, run.end)

"""Nights as findings, and pages of them."""

from __future__ import annotations

from datetime import UTC, datetime

from kraftline.report.findings import Findings, find
from kraftline.report.page import Made, page
from kraftline.report.summary import Summary, summary
from kraftline.report.tables import Tables
from kraftline.report.window import window_of
from tests.report.nights import CLUSTER, micro


def found_in(tables: Tables, start: float | None = None, end: float | None = None) -> Findings:
    """What there is to tell of a night, or of some seconds of it."""
    window = window_of(
        tables, None if start is None else micro(start), None if end is None else micro(end)
    )
    assert window is not None
    return find(CLUSTER, tables, window)


def said_of(tables: Tables, start: float | None = None, end: float | None = None) -> Summary:
    return summary(found_in(tables, start, end))


def html_of(tables: Tables) -> str:
    found = found_in(tables)
    return page(found, summary(found), [], Made("lake", datetime(2026, 3, 1, 9, tzinfo=UTC)))

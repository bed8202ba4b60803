"""Times as the readers of a report see them: as short as can be, never to be taken for another."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kraftline.report.window import SECOND, Clock, Window


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("start", "end", "moment", "shown"),
    [
        ("2026-03-01T03:00", "2026-03-01T04:00", "2026-03-01T03:12", "03:12:00"),
        ("2026-02-27T03:00", "2026-03-01T04:00", "2026-03-01T03:12", "01 Mar 03:12:00"),
        ("2025-12-31T23:00", "2026-01-01T01:00", "2025-12-31T23:12", "31 Dec 2025 23:12:00"),
        # A config that was set, or a commit that was made, long before the window.
        ("2026-03-01T03:00", "2026-03-01T04:00", "2026-02-01T03:12", "01 Feb 03:12:00"),
        ("2026-03-01T03:00", "2026-03-01T04:00", "2024-02-01T03:12", "01 Feb 2024 03:12:00"),
    ],
)
def test_a_moment_has_a_date_and_a_year_where_it_could_be_mistaken_without(
    start: str, end: str, moment: str, shown: str
) -> None:
    first, last = micros(start), micros(end)
    assert Clock(Window(first, last, first, last)).at(micros(moment)) == shown

"""`kraftline history health`: what was wrong, from when to when."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from kraftline.cli import lake as lakes
from kraftline.cli import metadata_log
from kraftline.cli.options import PATH, format_option

if TYPE_CHECKING:
    from kraftline.inspect.moments import Moment

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@click.command(name="health")
@click.argument("path", type=PATH, metavar="LAKE")
@click.option("--since", callback=metadata_log.moment, metavar="OFFSET|TIME", help="From then on.")
@click.option(
    "--until", callback=metadata_log.moment, metavar="OFFSET|TIME", help="Up to then, inclusive."
)
@lakes.cluster_option
@lakes.topic_option
@lakes.broker_option
@lakes.kind_option("offline, under-replicated, broker down")
@format_option
def command(
    path: str,
    since: Moment | None,
    until: Moment | None,
    clusters: tuple[str, ...],
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    kinds: tuple[str, ...],
    form: str,
) -> None:
    """Tell what was wrong at any time of a window according to LAKE, and for how long: partitions
    offline, under-replicated, at or under their min ISR, moving; brokers down.

    Exit code 0: fine; 2: not a lake, or nothing known of that time.

    \b
    Examples:
      kraftline history health lake
      kraftline history health lake --since 2026-03-01T03:00Z --type offline
      kraftline history health lake --topic orders --format csv
    """
    with lakes.opened(path) as lake:
        from kraftline.lake.coverage import window
        from kraftline.lake.queries import Chosen
        from kraftline.lake.questions import health, rows_of

        asked = window(lake, since, until, clusters)
        chosen = Chosen(topics, brokers, kinds)
        found = health(lake, asked, chosen)
        if not found.num_rows:
            lakes.say_unknown(lake, "health", chosen)
        rows = rows_of(found)
        if form == "table":
            _text(rows)
        else:
            metadata_log.write_rows(rows, form, found.column_names)
        lakes.say(asked.notes)


def _text(rows: list[dict[str, Any]]) -> None:
    columns: dict[str, Any] = {}
    if len({row["cluster_id"] for row in rows}) > 1:
        columns["cluster"] = lambda row: row["cluster_id"]
    columns |= {
        "what": lambda row: row["kind"],
        "of": _subject,
        "from": lambda row: _shown(row["valid_from_time"]),
        "to": lambda row: _shown(row["valid_to_time"]) if row["valid_to_time"] else "still",
        "for": _lasted,
        "detail": lambda row: row["detail"] or "",
    }
    lakes.write_table(columns, rows)


def _subject(row: dict[str, Any]) -> str:
    if row["topic"] is not None:
        return row["topic"] if row["partition"] is None else f"{row['topic']}-{row['partition']}"
    return "" if row["broker"] is None else f"broker {row['broker']}"


def _shown(time: str | None) -> str:
    return "-" if time is None else time.replace("T", " ")


def _lasted(row: dict[str, Any]) -> str:
    """How long, in the two largest units."""
    if row["valid_from_time"] is None or row["valid_to_time"] is None:
        return "-"
    start, end = map(datetime.fromisoformat, (row["valid_from_time"], row["valid_to_time"]))
    ms = round((end - start).total_seconds() * 1000)
    if ms < 60_000:
        return f"{ms}ms" if ms < 1000 else f"{ms / 1000:.1f}s"
    said: list[str] = []
    left = ms // 1000
    for name, unit in _UNITS:
        count, left = divmod(left, unit)
        if count or said:
            said.append(f"{count}{name}")
    return " ".join(said[:2])

"""`kraftline history changes`: what happened, in order, out of a lake."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from kraftline.cli import lake as lakes
from kraftline.cli import metadata_log
from kraftline.cli.options import PATH, format_option

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftline.inspect.cluster.telling import Told
    from kraftline.inspect.moments import Moment


@click.command(name="changes")
@click.argument("path", type=PATH, metavar="LAKE")
@click.option("--since", callback=metadata_log.moment, metavar="OFFSET|TIME", help="From then on.")
@click.option(
    "--until", callback=metadata_log.moment, metavar="OFFSET|TIME", help="Up to then, inclusive."
)
@lakes.cluster_option
@lakes.topic_option
@lakes.broker_option
@lakes.kind_option("leader, leader.moved, isr, broker.fenced, topic, config")
@click.option("--all", "everything", is_flag=True, help="Every change: nothing is folded.")
@format_option
def command(
    path: str,
    since: Moment | None,
    until: Moment | None,
    clusters: tuple[str, ...],
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    kinds: tuple[str, ...],
    everything: bool,
    form: str,
) -> None:
    """Tell what happened according to LAKE: topics, leaders and replicas, brokers, configs, ACLs …,
    in the order of the log and with the cause where it can be seen.

    For people, many like changes with one cause are one line with a count, unless --all.

    Exit code 0: fine; 2: not a lake, or nothing known of that time.

    \b
    Examples:
      kraftline history changes lake --since 2026-03-01T03:00Z --until 2026-03-01T03:30Z
      kraftline history changes lake --topic 'orders*' --type leader --type isr
      kraftline history changes lake --broker 2 --all
      kraftline history changes lake --format jsonl | grep topic.deleted
    """
    with lakes.opened(path) as lake:
        from kraftline.lake.coverage import window
        from kraftline.lake.queries import Chosen
        from kraftline.lake.questions import changes, rows_of

        asked = window(lake, since, until, clusters)
        chosen = Chosen(topics, brokers, kinds)
        found = changes(lake, asked, chosen)
        if not found.num_rows:
            lakes.say_unknown(lake, "changes", chosen)
        if form == "table":
            _story(found, everything)
        else:
            metadata_log.write_rows(rows_of(found), form, found.column_names)
        lakes.say(asked.notes)


def _story(found: pa.Table, everything: bool) -> None:
    from kraftline.inspect.cluster.folding import fold
    from kraftline.inspect.cluster.printing import story_lines
    from kraftline.lake.columns import millis

    rows = found.drop_columns(["time"]).to_pylist()
    for row, time in zip(rows, millis(found["time"]), strict=True):
        row["time"] = -1 if time is None else time
    by_cluster = sorted(rows, key=lambda row: row["cluster_id"] or "")  # each keeps its order
    several = len({row["cluster_id"] for row in rows}) > 1
    pen = metadata_log.pen()
    if not rows:
        click.echo("none")
    for cluster, of_one in groupby(by_cluster, key=lambda row: row["cluster_id"]):
        if several:
            metadata_log.write_lines([pen.bold(f"Cluster {cluster}")])
        told = map(_told, of_one)
        metadata_log.write_lines(story_lines(told if everything else fold(told), pen))


def _told(row: dict[str, Any]) -> Told:
    from kraftline.inspect.cluster.telling import Told
    from kraftline.metadata.words import Change

    change = Change(
        kind=row["kind"],
        subject=row["subject"] or "",
        text=row["text"] or "",
        before=row["before"],
        after=row["after"],
        because=row["cause"],
        topic=row["topic"],
        partition=row["partition"],
        brokers=() if row["broker"] is None else (row["broker"],),
    )
    return Told(offset=row["offset"], time=row["time"], change=change)

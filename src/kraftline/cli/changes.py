"""`kraftline changes`: what happened, in order."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from kraftline.cli import metadata_log
from kraftline.cli.options import PATH, format_option

if TYPE_CHECKING:
    from kraftline.inspect.history.moments import Moment


@click.command(name="changes")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option("--since", callback=metadata_log.moment, metavar="OFFSET|TIME", help="From then on.")
@click.option(
    "--until", callback=metadata_log.moment, metavar="OFFSET|TIME", help="Up to then, inclusive."
)
@click.option("--topic", "topics", multiple=True, help="Only of this topic (* matches).")
@click.option("--broker", "brokers", multiple=True, type=int, help="Only with this broker in it.")
@click.option(
    "--type",
    "kinds",
    multiple=True,
    help="Only of this kind: leader, leader.moved, isr, broker.fenced, topic, config, …",
)
@click.option("--all", "everything", is_flag=True, help="Every change: none folded or left out.")
@metadata_log.quick_option
@format_option
def command(
    paths: tuple[str, ...],
    since: Moment | None,
    until: Moment | None,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    kinds: tuple[str, ...],
    everything: bool,
    quick: bool,
    form: str,
) -> None:
    """Tell what happened in PATH: topics, leaders and replicas, brokers, configs, ACLs …, in the
    order of the log and with the cause where it can be seen.

    Many like changes with one cause are one line with a count, and bookkeeping is left out, unless
    --all. Programs get every change but bookkeeping from json, jsonl and csv.

    With --quick the replay starts at the newest snapshot before --since; without --since, what
    happened before the newest snapshot is not told.

    Exit code 0: fine; 1: something was damaged or missing; 2: not Kafka's.

    \b
    Examples:
      kraftline changes /var/lib/kafka --since 2026-03-01T03:00Z --until 2026-03-01T03:30Z
      kraftline changes /var/lib/kafka --topic 'orders*' --type leader --type isr
      kraftline changes /var/lib/kafka --broker 2 --all
      kraftline changes /var/lib/kafka --since 184467 --quick
      kraftline changes /var/lib/kafka --format jsonl | grep topic.deleted
    """
    from kraftline.inspect.cluster.folding import fold
    from kraftline.inspect.cluster.printing import COLUMNS, as_object, remarks, story_lines
    from kraftline.inspect.cluster.story import Filter, never_told, story, window
    from kraftline.inspect.history import Trouble

    wanted = Filter(topics, brokers, kinds, everything)
    with metadata_log.opened(paths) as history:
        last = window(history, since, until)
        told = story(history, since, until, wanted, quick=quick)
        pen = metadata_log.pen()
        with metadata_log.working(history, streaming=True):
            first = list(islice(told, 1))
            told = chain(first, told)
            if form != "table":
                metadata_log.write_rows(map(as_object, told), form, COLUMNS)
            else:
                told = told if everything else fold(told)
                metadata_log.write_lines(story_lines(told, pen) if first else ["No changes."])
        if not first:
            unknown = never_told(history, wanted)
            history.trouble.extend(Trouble(reason, harmless=True) for reason in unknown)
        if form == "table":
            metadata_log.write_lines(["", *map(pen.dim, remarks(history, last, quick=quick))])

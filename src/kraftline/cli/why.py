"""`kraftline why`: how a partition came to be as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftline.cli import metadata_log
from kraftline.cli.options import PATH, format_option

if TYPE_CHECKING:
    from kraftline.inspect.history.moments import Moment


@click.command(name="why")
@click.argument("name", metavar="TOPIC-PARTITION")
@click.option(
    "--in", "paths", multiple=True, required=True, type=PATH, metavar="PATH", help="Where to look."
)
@click.option(
    "--at",
    callback=metadata_log.moment,
    metavar="OFFSET|TIME",
    help="Up to then; without it, up to the end.",
)
@metadata_log.quick_option
@format_option
def command(name: str, paths: tuple[str, ...], at: Moment | None, quick: bool, form: str) -> None:
    """Tell the story of one partition in PATH up to a moment: who led it, who was in sync, and
    which events of brokers led there. The last lines say how it stood.

    With --quick, what happened before the newest snapshot is not told.

    Exit code 0: fine; 1: something was damaged or missing; 2: no such partition, or no answer for
    that moment.

    \b
    Examples:
      kraftline why orders-3 --in /var/lib/kafka
      kraftline why orders-3 --in /var/lib/kafka --at 2026-03-01T03:12:00Z
      kraftline why orders-3 --in /var/lib/kafka --quick
      kraftline why orders-3 --in node-1 --in node-2 --at 184467 --format json
    """
    from kraftline.inspect.cluster.printing import COLUMNS, as_object, remarks, story_lines
    from kraftline.inspect.cluster.why import as_answer, split_name, why
    from kraftline.inspect.moments import show_moment

    try:
        topic, partition = split_name(name)
    except ValueError as error:
        metadata_log.wrong_use(str(error))
    with metadata_log.opened(paths) as history:
        with metadata_log.working(history):
            answer = why(history, topic, partition, at, quick=quick)
        if form == "json":
            metadata_log.write_object(as_answer(answer))
        elif form != "table":
            metadata_log.write_rows(map(as_object, answer.events), form, COLUMNS)
        else:
            pen = metadata_log.pen()
            metadata_log.write_lines(
                [
                    *story_lines(answer.events, pen),
                    *([""] if answer.events else []),
                    pen.bold(f"At {show_moment(answer.offset, answer.time)}:"),
                    f"  {answer.sentence}",
                    "",
                    *map(pen.dim, remarks(history, answer.offset, quick=quick)),
                ]
            )

"""`kraftline diff`: what is different between two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftline.cli import metadata_log
from kraftline.cli.options import PATH, format_option

if TYPE_CHECKING:
    from kraftline.inspect.history.moments import Moment


@click.command(name="diff")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.argument("first", metavar="A", callback=metadata_log.moment)
@click.argument("second", metavar="B", callback=metadata_log.moment)
@click.option("--all", "everything", is_flag=True, help="Every change: nothing is folded.")
@metadata_log.quick_option
@format_option
def command(
    paths: tuple[str, ...],
    first: Moment,
    second: Moment,
    everything: bool,
    quick: bool,
    form: str,
) -> None:
    """Say what is different in PATH between the moments A and B: offsets (digits) or times.

    Only the two states count, not what happened between them (for that: `kraftline changes`).
    With B before A, it says what going back would change.

    Exit code 0: fine, different or not; 1: something was damaged or missing; 2: not Kafka's, or no
    answer for those moments.

    \b
    Examples:
      kraftline diff /var/lib/kafka 120000 184467
      kraftline diff /var/lib/kafka 2026-03-01T03:00Z 2026-03-01T03:30Z
      kraftline diff node-1 node-2 node-3 0 184467 --format jsonl
    """
    from kraftline.inspect.cluster.difference import between
    from kraftline.inspect.cluster.folding import fold_changes
    from kraftline.inspect.cluster.printing import COLUMNS, as_object, difference_lines, remarks

    with metadata_log.opened(paths) as history:
        with metadata_log.working(history):
            before, after, changes = between(history, first, second, quick=quick)
        if form == "table" and not everything:
            changes = [change for change in changes if not change.minor]
        fold = form == "table" and not everything
        told = fold_changes(changes, few=3 if fold else len(changes))
        if form != "table":
            metadata_log.write_rows(map(as_object, told), form, COLUMNS[2:])
            return
        pen = metadata_log.pen()
        metadata_log.write_lines(
            [
                pen.bold(f"From offset {before.offset} to offset {after.offset}"),
                *(difference_lines(told, pen) if told else ["", "No difference."]),
                "",
                *map(pen.dim, remarks(history, max(before.offset, after.offset), quick=quick)),
            ]
        )

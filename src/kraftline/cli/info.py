"""`kraftline info`: say what a file or directory is, and what is in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import click
import msgspec
from rich.console import Console, RenderableType

from kraftline.cli.options import PATH, format_option
from kraftline.errors import NotKafka
from kraftline.inspect.info import FileInfo, Info, PartitionInfo, as_object, as_rows, info
from kraftline.inspect.info.text import file_text, log_directory_text, partition_text

# Wide enough for a table in a file or a pipe, where no terminal says how wide it is.
_PIPED_WIDTH = 120
_NARROW = 100


@click.command(name="info")
@click.argument("path", type=PATH, metavar="PATH")
@click.option("--all", "everything", is_flag=True, help="Show every partition and segment.")
@format_option
@click.pass_context
def command(ctx: click.Context, path: str, everything: bool, form: str) -> None:
    """Say what PATH is: a log directory, a partition's directory, or any one file of Kafka's.

    Offsets and times come from the ends of segments and from indexes: nothing is read in full,
    except a single file that is asked about.

    \b
    json   one object with all that is known
    jsonl  a line per partition, segment or file
    csv    the same, as a table

    Exit code 0: fine; 1: something could not be read; 2: not Kafka's.

    \b
    Examples:
      kraftline info /var/lib/kafka
      kraftline info /var/lib/kafka/orders-0
      kraftline info 00000000000000000042-0000000003.checkpoint --format json
    """
    try:
        found = info(path)
    except NotKafka as error:
        click.echo(f"kraftline: {error}", err=True)
        ctx.exit(2)
    if form == "table":
        _print(found, everything)
    elif form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(as_object(found)), indent=2))
    elif form == "jsonl":
        for row in as_rows(found):
            click.echo(msgspec.json.encode(row))
    else:
        _csv(as_rows(found))
    ctx.exit(1 if found.unreadable else 0)


def _text(found: Info, everything: bool, width: int) -> Iterator[RenderableType]:
    if isinstance(found, FileInfo):
        return file_text(found)
    if isinstance(found, PartitionInfo):
        return partition_text(found, everything=everything)
    return log_directory_text(found, everything=everything, narrow=width < _NARROW)


def _print(found: Info, everything: bool) -> None:
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(*_text(found, everything, console.width), sep="\n")
        return
    text = io.StringIO()
    console = Console(highlight=False, file=text, width=_PIPED_WIDTH)
    console.print(*_text(found, everything, console.width), sep="\n")
    for line in text.getvalue().splitlines():
        click.echo(line.rstrip())  # tables fill up with spaces


def _csv(rows: list[dict[str, Any]]) -> None:
    out = io.StringIO()
    names = list(rows[0]) if rows else []
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])
    click.echo(out.getvalue(), nl=False)


def _cell(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value

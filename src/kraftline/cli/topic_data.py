"""`kraftline topic-data`: the records of topics as Parquet or Delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftline.cli.job_progress import JobProgress
from kraftline.cli.options import instant
from kraftline.errors import KraftlineError

if TYPE_CHECKING:
    from kraftline.spark.topic_data.export import Exported

_FORMS = ("bytes", "text", "json")


@click.command(name="topic-data")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--to", "out", required=True, metavar="OUT", help="The folder to write; a new one.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("parquet", "delta")),
    default="parquet",
    show_default=True,
    help="Parquet files, or the same as a Delta table.",
)
@click.option("--topic", "topics", multiple=True, help="Only this topic (* matches).")
@click.option("--since", callback=instant, metavar="TIME", help="Only from this time on: ISO-8601.")
@click.option("--until", callback=instant, metavar="TIME", help="Only before this time.")
@click.option("--key", type=click.Choice(_FORMS), default="bytes", show_default=True)
@click.option("--value", type=click.Choice(_FORMS), default="bytes", show_default=True)
@click.option(
    "--isolation",
    type=click.Choice(("read_committed", "read_uncommitted")),
    default="read_committed",
    show_default=True,
    help="What a consumer would be shown, or all that is in the files.",
)
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    out: str,
    form: str,
    topics: tuple[str, ...],
    since: int | None,
    until: int | None,
    key: str,
    value: str,
    isolation: str,
) -> None:
    """Write the records of topics to OUT, a table partitioned by topic, with Spark.

    PATH is a log directory, a partition's directory, a segment, a glob or a URL: of a broker, a
    backup, a dead broker's disk. Without --topic all topics but Kafka's own are taken. Keys and
    values stay bytes, or become text, or structs of their JSON fields; what is not that stays
    beside them as bytes with a reason. OUT appears when all of it is written.

    Exit code 0: all was read; 1: some was unreadable, and left out; 2: not Kafka's.

    \b
    Examples:
      kraftline topic-data /var/lib/kafka --to orders.parquet --topic orders --value json
      kraftline topic-data /var/lib/kafka --to lake/events --topic 'event-*' --format delta
    """
    try:
        from kraftline.spark.session import local_session
        from kraftline.spark.sources.segment_logs import find_logs
        from kraftline.spark.topic_data.export import Export, export
    except ModuleNotFoundError as error:
        raise KraftlineError(f"this needs {error.name}: pip install 'kraftline[spark]'") from None

    wanted = Export(
        paths=paths,
        out=out,
        topics=topics,
        since=since,
        until=until,
        key=key,
        value=value,
        committed=isolation == "read_committed",
        format=form,
    )
    find_logs(paths, topics)  # what is wrong with a path is said before Java starts
    spark = local_session("kraftline topic-data")
    with JobProgress(spark, quiet=False) as progress:
        done = export(spark, wanted, progress.stage)
    _print(done, out)
    for problem in done.problems:
        click.echo(f"kraftline: {problem}", err=True)
    ctx.exit(1 if done.problems else 0)


def _print(done: Exported, out: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    columns = ("partition", "offsets", "records", "aborted", "control", "undecided", "deleted")
    for name in (*columns, "missing"):
        table.add_column(name, justify="left" if name in ("partition", "offsets") else "right")
    for each in done.partitions:
        offsets = "none" if each.from_offset is None else f"{each.from_offset}..{each.to_offset}"
        numbers = (
            each.written,
            each.aborted,
            each.control,
            each.undecided,
            each.deleted,
            each.missing,
        )
        table.add_row(each.name, offsets, *(f"{number:,}" for number in numbers))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    for column, count in done.errors.items():
        if count:
            console.print(f"{count:,} records have a {column}; their bytes are kept")
    for copy in done.copies:
        console.print(f"{copy}: not read, another copy of the partition reaches further")
    total = sum(each.written for each in done.partitions)
    console.print(f"{out}: {total:,} records, {done.files:,} files, {done.bytes / 1e6:,.1f} MB")

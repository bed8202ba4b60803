"""`kraftline topic-data`: the records of topics as Parquet or Delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftline.cli import metadata_log
from kraftline.cli.job_progress import JobProgress, starting
from kraftline.cli.options import PATH, instant
from kraftline.errors import KraftlineError
from kraftline.inspect.cluster.layout import table

if TYPE_CHECKING:
    from kraftline.spark.topic_data.checks import PartitionCount
    from kraftline.spark.topic_data.export import Exported

_FORMS = ("bytes", "text", "json")


@click.command(name="topic-data")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option(
    "--to", "out", required=True, type=PATH, metavar="OUT", help="The folder to write; a new one."
)
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
@click.option("--until", callback=instant, metavar="TIME", help="Only up to this time, inclusive.")
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
        from kraftline.spark.topic_data.export import Export, export, free_folder
    except ModuleNotFoundError as error:
        raise KraftlineError(f"this needs {error.name}: pip install 'kraftline[spark]'") from None

    wanted = Export(
        paths=paths,
        out=out,
        topics=topics,
        since=since,
        until=None if until is None else until + 1,
        key=key,
        value=value,
        committed=isolation == "read_committed",
        format=form,
    )
    if since is not None and until is not None and until < since:
        raise click.UsageError("--until lies before --since")
    # What is wrong with a path is said before Java starts.
    find_logs(paths, topics)
    free_folder(out)
    with starting(quiet=False):
        spark = local_session("kraftline topic-data")
    try:
        with JobProgress(spark, quiet=False) as progress:
            done = export(spark, wanted, progress.stage)
    except KeyboardInterrupt:
        click.echo(f"stopped; {out} is not there", err=True)
        ctx.exit(130)
    _print(done, out)
    for problem in done.problems:
        click.echo(f"kraftline: {problem}", err=True)
    ctx.exit(1 if done.problems else 0)


def _print(done: Exported, out: str) -> None:
    numbers = ("records", "aborted", "control", "undecided", "deleted", "missing")
    rows = [
        (
            each.name,
            _offsets(each),
            *(
                f"{count:,}"
                for count in (
                    each.written,
                    each.aborted,
                    each.control,
                    each.undecided,
                    each.deleted,
                    each.missing,
                )
            ),
        )
        for each in done.partitions
    ]
    lines = table(("partition", "offsets", *numbers), rows, metadata_log.pen(), right=numbers)
    metadata_log.write_lines(lines)
    for column, count in done.errors.items():
        if count:
            click.echo(f"{count:,} records have a {column}; their bytes are kept")
    for copy in done.copies:
        click.echo(f"{copy}: not read, another copy of the partition is as good, or better")
    total = sum(each.written for each in done.partitions)
    click.echo(f"{out}: {total:,} records, {done.files:,} files, {done.bytes / 1e6:,.2f} MB")


def _offsets(each: PartitionCount) -> str:
    """The first and the last that its segments hold."""
    if each.from_offset is None or each.to_offset is None:
        return "none"
    return f"{each.from_offset} to {each.to_offset - 1}"

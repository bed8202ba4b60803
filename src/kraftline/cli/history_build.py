"""`kraftline history build`: Kafka's files into a lake, or what is new in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftline.cli.job_progress import JobProgress, starting
from kraftline.cli.options import PATH
from kraftline.errors import KraftlineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftline.spark.build import Outcome


@click.command(name="build")
@click.option(
    "--from",
    "inputs",
    multiple=True,
    required=True,
    type=PATH,
    metavar="PATH",
    help="Log directories, metadata directories, segments or snapshots; globs and URLs too.",
)
@click.argument("more", nargs=-1, type=PATH, metavar="[PATH...]")
@click.option(
    "--to",
    "lake",
    required=True,
    type=PATH,
    metavar="LAKE",
    help="The lake's folder, or a new one.",
)
@click.option("--cluster-id", help="Whose files they are, where no meta.properties says so.")
@click.option("--watch", "follow", is_flag=True, help="Go on, and build whenever files change.")
@click.option("--master", metavar="URL", help="A Spark cluster; without, this machine alone.")
@click.option("--quiet", is_flag=True, help="Say nothing but the outcome.")
@click.pass_context
def command(
    ctx: click.Context,
    inputs: tuple[str, ...],
    more: tuple[str, ...],
    lake: str,
    cluster_id: str | None,
    follow: bool,
    master: str | None,
    quiet: bool,
) -> None:
    """Read Kafka's files into a lake: its metadata as tables of history, its topics as sizes and
    consumer groups. A second run reads only what is new. Needs Spark, and so Java.

    Copies of one log from several nodes are one log, and many clusters can be in one lake. Readers
    see a build when all of it is there; one that is stopped leaves the lake as it was.

    Exit code 0: fine, or nothing new; 1: something could not be read, or lost a conflict between
    copies, and is in the table quarantine; 2: not Kafka's.

    \b
    Examples:
      kraftline history build --from /var/lib/kafka --to lake
      kraftline history build --from node-1 node-2 node-3 --to lake
      kraftline history build --from '/backup/*/kafka' --to lake --quiet
      kraftline history build --from /var/lib/kafka --to lake --watch
    """
    try:
        from kraftline.spark.build import build
        from kraftline.spark.watch import watch
    except ModuleNotFoundError as error:
        raise KraftlineError(f"this needs {error.name}: pip install 'kraftline[spark]'") from None

    paths = [*inputs, *more]
    spark = _session(master, paths, quiet=quiet)
    trouble = False

    def built(outcome: Outcome) -> None:
        nonlocal trouble
        click.echo(_told(outcome, lake))
        if outcome.quarantined:
            trouble = True
            click.echo(f"kraftline: {_quarantined(outcome, lake)}", err=True)

    try:
        with JobProgress(spark, quiet=quiet) as progress:
            if follow:
                watch(spark, paths, lake, cluster_id=cluster_id, progress=progress, built=built)
                return
            outcome = build(spark, paths, lake, cluster_id=cluster_id, progress=progress)
    except KeyboardInterrupt:
        click.echo("stopped; the lake is as its last build left it", err=True)
        ctx.exit(130)
    built(outcome)
    spark.stop()
    ctx.exit(1 if trouble else 0)


def _session(master: str | None, paths: list[str], *, quiet: bool) -> SparkSession:
    from kraftline.spark.inputs import find_inputs
    from kraftline.spark.session import PYTHON_WORKS, local_session

    files = find_inputs(paths)
    memory = "2g" if sum(file.size for file in files) < _MUCH else "4g"
    # Of topic segments Spark itself makes tables.
    of_topics = sum(file.size for file in files if not file.is_metadata)
    settings: dict[str, Any] = PYTHON_WORKS if of_topics < _LITTLE else {}
    with starting(quiet=quiet):
        spark = local_session("kraftline history", master=master, memory=memory, **settings)
    # What goes wrong in a task is told once, in words.
    spark.sparkContext.setLogLevel("OFF")
    return spark


_MUCH = 256 * 1024 * 1024
_LITTLE = 16 * 1024 * 1024


def _told(outcome: Outcome, lake: str) -> str:
    clusters = ", ".join(outcome.clusters[:3])
    if len(outcome.clusters) > 3:
        clusters = f"{len(outcome.clusters)} clusters"
    if outcome.build is None:
        return f"{lake}: nothing new from {clusters}"
    rows = sum(outcome.rows.values())
    anew = f"; made anew: {', '.join(outcome.anew)}" if outcome.anew else ""
    return (
        f"{lake}: build {outcome.build} of {clusters}: {outcome.records:,} records, {rows:,} rows "
        f"of history in {outcome.seconds:.1f} s{anew}"
    )


def _quarantined(outcome: Outcome, lake: str) -> str:
    first = outcome.quarantined[0]
    where = first.file if first.from_position is None else f"{first.file} at {first.from_position}"
    count = len(outcome.quarantined)
    more = "" if count == 1 else f" and {count - 1} more"
    return (
        f"in quarantine: {where}: {first.reason}{more}; the rest is in the lake "
        f"(`kraftline history as-of {lake} quarantine` lists all)"
    )

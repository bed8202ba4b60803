"""`kraftline report`: a lake as one page of pictures."""

from __future__ import annotations

from pathlib import Path

import click

from kraftline.cli import lake as lakes
from kraftline.cli.options import PATH, instant
from kraftline.errors import KraftlineError

_US = 1000  # in a millisecond


@click.command(name="report")
@click.argument("lake", type=PATH, metavar="LAKE")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page to write.",
)
@click.option(
    "--since", "--from", "start", callback=instant, metavar="TIME", help="Only from then on."
)
@click.option("--until", "--to", "end", callback=instant, metavar="TIME", help="Only up to then.")
@click.option("--cluster", metavar="ID", help="This one, where the lake has several.")
def command(lake: str, out: Path, start: int | None, end: int | None, cluster: str | None) -> None:
    """Write one page that tells what happened in LAKE: in sentences, then in pictures.

    The page is one file and needs no network. It tells of brokers that were lost, partitions
    without a leader or short of replicas, leaders on the move, changes, growing topics, lagging
    groups, configs, and what the data does not cover. Where LAKE has several clusters it lists all
    and tells of the one that was worst off, or of --cluster. Times are UTC.

    \b
    Examples:
      kraftline report out/lake --out report.html
      kraftline report out/lake --since 2026-03-01T03:00Z --until 2026-03-01T04:00Z
    """
    if start is not None and end is not None and start > end:
        raise click.UsageError("--since is after --until")
    if not out.parent.is_dir():
        raise click.UsageError(f"{out.parent}: there is no such folder to write the page to")
    try:
        from kraftline.report.report import report
    except ModuleNotFoundError as error:
        raise KraftlineError(
            f"a report needs {error.name}: pip install 'kraftline[report]'"
        ) from None

    with lakes.opened(lake) as opened:
        made = report(
            opened,
            cluster=cluster,
            start=None if start is None else start * _US,
            end=None if end is None else end * _US,
        )
    _write(out, made.html)
    if made.said is None:
        click.echo("There is nothing to report: the lake tells of no time at all")
    else:
        if made.clusters > 1:
            click.echo(f"Of {made.clusters} clusters {made.cluster} was worst off:")
        click.echo(made.said.headline)
        click.echo(made.said.now)
    lakes.say(each.sentence for each in made.silent)
    click.echo(f"{out}: {out.stat().st_size / 1e6:,.2f} MB, open it in any browser")


def _write(out: Path, html: str) -> None:
    """All of the page or none: an older one stays as it was."""
    aside = out.with_name(f".{out.name}.part")
    try:
        aside.write_text(html, encoding="utf-8")
        aside.replace(out)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise KraftlineError(f"{out}: cannot be written: {error.strerror}") from error

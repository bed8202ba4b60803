"""`kraftline image`: the cluster as it stands, or stood."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import click

from kraftline.cli import metadata_log
from kraftline.cli.options import FORMATS, PATH

if TYPE_CHECKING:
    from kraftline.inspect.cluster.sections import View
    from kraftline.inspect.history import History
    from kraftline.inspect.history.moments import Moment
    from kraftline.metadata.image import MetadataImage

_SECTIONS = (
    "features",
    "voters",
    "controllers",
    "brokers",
    "topics",
    "troubles",
    "partitions",
    "configs",
    "quotas",
    "acls",
    "scram",
    "tokens",
    "producer-ids",
)


@click.command(name="image")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option(
    "--as-of",
    "at",
    callback=metadata_log.moment,
    metavar="OFFSET|TIME",
    help="How it stood then: digits are an offset, else ISO-8601.",
)
@click.option(
    "--section", "sections", multiple=True, type=click.Choice(_SECTIONS), help="Only this, in full."
)
@click.option("--tree", "as_tree", is_flag=True, help="Everything as one tree.")
@click.option("--show-secrets", "secrets", is_flag=True, help="Keys, salts and passwords as well.")
@metadata_log.quick_option
@click.option(
    "--format",
    "form",
    type=click.Choice((*FORMATS, "snapshot")),
    default="table",
    show_default=True,
    help="A table for people; snapshot: a metadata record a line; the others for programs.",
)
def command(
    paths: tuple[str, ...],
    at: Moment | None,
    sections: tuple[str, ...],
    as_tree: bool,
    secrets: bool,
    quick: bool,
    form: str,
) -> None:
    """Show the cluster in PATH: a metadata directory, a log directory, a segment, a snapshot; or
    the directories of several nodes of one cluster, which are read as one log.

    \b
    json      one object with every section
    jsonl     a line per broker, topic, partition …; "section" says which
    csv       one --section as a table
    snapshot  the state as Kafka's own snapshot records

    Exit code 0: fine; 1: something was damaged or missing; 2: not Kafka's, or no answer for that
    moment.

    \b
    Examples:
      kraftline image /var/lib/kafka
      kraftline image /var/lib/kafka --as-of 2026-03-01T03:12:00Z --section troubles
      kraftline image /var/lib/kafka --as-of 184467 --format snapshot > state.jsonl
      kraftline image node-1/__cluster_metadata-0 node-2/__cluster_metadata-0 --tree
    """
    if form == "csv" and len(sections) != 1:
        metadata_log.wrong_use("--format csv prints one section: add --section partitions, say")
    if form == "snapshot" and sections:
        metadata_log.wrong_use("--format snapshot prints the whole state: leave --section out")
    if as_tree and (sections or form != "table"):
        other = "--section" if sections else f"--format {form}"
        metadata_log.wrong_use(f"--tree is everything, for people: leave out either it or {other}")
    from kraftline.inspect.cluster.sections import View

    with metadata_log.opened(paths) as history:
        with metadata_log.working(history):
            leg, offset = history.find(at)
            image = history.at(leg, offset, quick=quick)
        if form == "snapshot":
            _snapshot(image, history, secrets)
            return
        view = View(image, history.quorum(leg, offset), secrets)
        if form == "table":
            _text(view, history, sections, as_tree, quick)
        else:
            _rows(view, history, sections or _SECTIONS, form)


def _text(
    view: View, history: History, sections: tuple[str, ...], as_tree: bool, quick: bool
) -> None:
    from kraftline.inspect.cluster.printing import remarks
    from kraftline.inspect.cluster.text import image_text, image_tree

    pen = metadata_log.pen()
    if as_tree:
        said = remarks(history, view.image.offset, quick=quick)
        metadata_log.write_lines(chain(image_tree(view), [""], map(pen.dim, said)))
        return
    lines = image_text(view, history, pen, sections=sections, quick=quick)
    metadata_log.write_lines(lines)


def _rows(view: View, history: History, sections: tuple[str, ...], form: str) -> None:
    from kraftline.inspect.cluster.sections import COLUMNS, SECTIONS, as_of

    if form == "json":
        whole: dict[str, object] = {"as_of": as_of(view.image, history)}
        whole |= {name: list(SECTIONS[name](view)) for name in sections}
        metadata_log.write_object(whole)
        return
    several = form == "jsonl"
    rows = (
        {"section": name, **row} if several else row
        for name in sections
        for row in SECTIONS[name](view)
    )
    metadata_log.write_rows(rows, form, None if several else COLUMNS[sections[0]].split())


def _snapshot(image: MetadataImage, history: History, secrets: bool) -> None:
    from kraftline.inspect.cluster.snapshot import snapshot_lines
    from kraftline.inspect.history import Trouble

    def lost(what: str) -> None:
        history.trouble.append(Trouble(f"no record of this metadata.version can say: {what}"))

    metadata_log.write_lines(line.decode() for line in snapshot_lines(image, secrets, lost))

"""`kraftline image`: the cluster as it stands, or stood."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import click

from kraftline.cli import metadata_log
from kraftline.cli.options import FORMATS

if TYPE_CHECKING:
    from kraftline.inspect.history import History
    from kraftline.inspect.history.moments import Moment
    from kraftline.metadata.image import MetadataImage

_SECTIONS = (
    "features",
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
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
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
    with metadata_log.opened(paths) as history:
        with metadata_log.working(history):
            image = history.image(at, quick=quick)
        if form == "snapshot":
            _snapshot(image, history, secrets)
        elif form == "table":
            _text(image, history, sections, as_tree, secrets, quick)
        else:
            _rows(image, history, sections or _SECTIONS, secrets, form)


def _text(
    image: MetadataImage,
    history: History,
    sections: tuple[str, ...],
    as_tree: bool,
    secrets: bool,
    quick: bool,
) -> None:
    from kraftline.inspect.cluster.printing import remarks
    from kraftline.inspect.cluster.text import image_text, image_tree

    pen = metadata_log.pen()
    if as_tree:
        said = remarks(history, image.offset, quick=quick)
        metadata_log.write_lines(chain(image_tree(image, secrets), [""], map(pen.dim, said)))
        return
    lines = image_text(image, history, pen, sections=sections, secrets=secrets, quick=quick)
    metadata_log.write_lines(lines)


def _rows(
    image: MetadataImage, history: History, sections: tuple[str, ...], secrets: bool, form: str
) -> None:
    from kraftline.inspect.cluster.sections import SECTIONS, as_of

    if form == "json":
        whole: dict[str, object] = {"as_of": as_of(image, history)}
        whole |= {name: SECTIONS[name](image, secrets) for name in sections}
        metadata_log.write_object(whole)
        return
    several = form == "jsonl"
    rows = (
        {"section": name, **row} if several else row
        for name in sections
        for row in SECTIONS[name](image, secrets)
    )
    metadata_log.write_rows(rows, form)


def _snapshot(image: MetadataImage, history: History, secrets: bool) -> None:
    from kraftline.inspect.cluster.snapshot import snapshot_lines
    from kraftline.inspect.history import Trouble

    def lost(what: str) -> None:
        history.trouble.append(Trouble(f"no record of this metadata.version can say: {what}"))

    metadata_log.write_lines(line.decode() for line in snapshot_lines(image, secrets, lost))

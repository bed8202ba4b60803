"""`kraftline history as-of`: tables of a lake, or the whole cluster, as they stood."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kraftline.cli import lake as lakes
from kraftline.cli import metadata_log
from kraftline.cli.options import FORMATS, PATH

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftline.inspect.moments import Moment
    from kraftline.lake.coverage import Standing
    from kraftline.lake.lake import Lake
    from kraftline.lake.queries import Chosen

# What a table shows to people; all columns are in the other formats.
_SHOWN = {
    "topics": ("topic", "topic_id"),
    "partitions": ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "elr"),
    "brokers": ("broker", "fenced", "in_controlled_shutdown", "rack", "broker_epoch", "endpoints"),
    "controllers": ("controller", "endpoints"),
    "configs": ("resource_type", "resource", "name", "value"),
    "acls": ("principal", "permission", "operation", "resource_type", "resource", "pattern_type"),
    "client_quotas": ("entity_text", "key", "value"),
    "scram": ("user", "mechanism", "iterations"),
    "features": ("feature", "level"),
    "producer_ids": ("next_producer_id",),
    "delegation_tokens": ("owner", "requester", "renewers", "expiration_time"),
    "health": ("kind", "topic", "partition", "broker", "detail"),
    "groups": ("group", "kind", "group_state", "members", "epoch", "protocol"),
    "group_offsets": ("group", "topic", "partition", "committed_offset", "lag", "commit_time"),
}
# Those that have no moments, and are shown whole.
_WHOLE = {
    "coverage": ("how", "leg", "from_offset", "to_offset", "from_time", "to_time", "source"),
    "quarantine": ("kind", "file", "from_position", "from_offset", "to_offset", "reason"),
    "topic_sizes": ("topic", "partition", "node", "base_offset", "end_offset", "records", "bytes"),
}
# Rows that a summary's "… and more" is about.
_TABLES = {
    "troubles": "health",
    "quotas": "client_quotas",
    "tokens": "delegation_tokens",
    "producer-ids": "producer_ids",
}


@click.command(name="as-of")
@click.argument("path", type=PATH, metavar="LAKE")
@click.argument("table", required=False, type=click.Choice((*_SHOWN, *_WHOLE)), metavar="[TABLE]")
@click.option(
    "--at",
    callback=metadata_log.moment,
    metavar="OFFSET|TIME",
    help="How it stood then: digits are an offset, else ISO-8601. Without it: at the end.",
)
@lakes.cluster_option
@lakes.topic_option
@lakes.broker_option
@click.option(
    "--format",
    "form",
    type=click.Choice((*FORMATS, "snapshot")),
    default="table",
    show_default=True,
    help="A table for people; snapshot: a metadata record a line; the others for programs.",
)
def command(
    path: str,
    table: str | None,
    at: Moment | None,
    clusters: tuple[str, ...],
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    form: str,
) -> None:
    """Show a TABLE of LAKE as it stood at a moment: topics, partitions, brokers, controllers,
    configs, acls, client_quotas, scram, features, producer_ids, delegation_tokens, health, groups,
    group_offsets. Without TABLE, the cluster at a glance.

    Three tables are not of a moment, and shown whole: coverage (which part of the log is known),
    quarantine (what could not be read, and why), topic_sizes (segments).

    \b
    json      the rows, or one object with every table
    jsonl     a row a line; without TABLE, "table" says which
    csv       one TABLE
    snapshot  the state as Kafka's own snapshot records, without the secrets

    Exit code 0: fine; 2: not a lake, or no answer for that moment.

    \b
    Examples:
      kraftline history as-of lake --at 2026-03-01T03:12:00Z
      kraftline history as-of lake partitions --at 184467 --topic orders
      kraftline history as-of lake configs --topic 'orders*' --format csv
      kraftline history as-of lake quarantine
      kraftline history as-of lake --at 184467 --format snapshot > state.jsonl
    """
    if form == "csv" and table is None:
        metadata_log.wrong_use("--format csv prints one table: name it, partitions say")
    if form == "snapshot" and (table or topics or brokers):
        metadata_log.wrong_use("--format snapshot prints the whole state: leave TABLE and such out")
    if table is None and form == "table" and (topics or brokers):
        metadata_log.wrong_use("--topic and --broker choose rows of a TABLE: name one")
    if table in _WHOLE and at is not None:
        metadata_log.wrong_use(f"{table} is not of a moment, and shown whole: leave --at out")
    with lakes.opened(path) as lake:
        from kraftline.lake.coverage import stand
        from kraftline.lake.queries import Chosen
        from kraftline.lake.questions import as_of, whole

        chosen = Chosen(topics, brokers)
        if table in _WHOLE:
            _table(lake, table, whole(lake, table, clusters, chosen), chosen, form)
            return
        standing = stand(lake, at, clusters)
        if form == "snapshot":
            _snapshot(lake, standing)
        elif table is not None:
            _table(lake, table, as_of(lake, table, standing, chosen), chosen, form)
        elif form == "table":
            _glance(lake, standing)
        else:
            _everything(lake, standing, chosen, form)
        lakes.say(standing.notes)


def _table(lake: Lake, name: str, found: pa.Table, chosen: Chosen, form: str) -> None:
    from kraftline.lake.questions import rows_of
    from kraftline.lake.tables import TABLES

    rows = rows_of(found)
    if not rows:
        lakes.say_unknown(lake, name, chosen)
    if form != "table":
        metadata_log.write_rows(rows, form, TABLES[name].columns.names)
        return
    several = len({row["cluster_id"] for row in rows}) > 1
    shown = (*(("cluster_id",) if several else ()), *(_SHOWN | _WHOLE)[name])
    columns = {each.replace("_", " "): _cell(each) for each in shown}
    if name in _SHOWN:
        columns["since offset"] = _cell("valid_from_offset")
        columns["since"] = _cell("valid_from_time")
    lakes.write_table(columns, rows)


def _cell(column: str) -> Callable[[Any], str]:
    from kraftline.inspect.cluster.layout import leaf

    def cell(row: Any) -> str:
        value = row[column]
        if column == "endpoints":
            return leaf([f"{each['name']}://{each['host']}:{each['port']}" for each in value])
        if column == "value" and row.get("is_secret"):
            return "[hidden]"
        if column == "leader" and value == -1:
            return "none"
        return leaf(value)

    return cell


def _everything(lake: Lake, standing: Standing, chosen: Chosen, form: str) -> None:
    """Every table that can be chosen from so, as objects."""
    from kraftline.lake.coverage import NoAnswer
    from kraftline.lake.questions import as_of, iso_time, rows_of

    whole: dict[str, Any] = {}
    for name in _SHOWN:
        try:
            whole[name] = rows_of(as_of(lake, name, standing, chosen))
        except NoAnswer:
            continue
    if form == "jsonl":
        lines = ({"table": name, **row} for name, rows in whole.items() for row in rows)
        metadata_log.write_rows(lines, form)
        return
    places = [
        {
            "cluster_id": place.cluster_id,
            "offset": place.offset,
            "time": None if place.time is None else iso_time(place.time),
        }
        for place in standing.places
    ]
    metadata_log.write_object({"as_of": places, **whole})


def _glance(lake: Lake, standing: Standing) -> None:
    from kraftline.inspect.cluster.sections import View
    from kraftline.inspect.cluster.text import image_text
    from kraftline.lake.coverage import read_coverage
    from kraftline.lake.image import image_at

    pen = metadata_log.pen()
    known = {each.cluster_id: each for each in read_coverage(lake, standing.clusters)}
    for number, place in enumerate(standing.places):
        gap = [""] if number else []
        metadata_log.write_lines([*gap, pen.bold(f"Cluster {place.cluster_id}")])
        lines = image_text(
            View(image_at(lake, place)),
            known[place.cluster_id],
            pen,
            more=lambda name: f"as-of LAKE {_TABLES.get(name, name)}",
        )
        metadata_log.write_lines(lines)


def _snapshot(lake: Lake, standing: Standing) -> None:
    from kraftline.inspect.cluster.snapshot import snapshot_lines
    from kraftline.lake.image import image_at, left_out

    if len(standing.places) > 1:
        names = ", ".join(place.cluster_id for place in standing.places)
        metadata_log.wrong_use(f"a snapshot is of one cluster: choose one of {names} by --cluster")
    image = image_at(lake, standing.places[0])
    lost: list[str] = []
    lines = snapshot_lines(image, False, lost.append)
    metadata_log.write_lines(line.decode() for line in lines)
    lakes.say(f"no record of this metadata.version can say: {what}" for what in lost)
    lakes.say(f"hidden, since a lake has none: {what}" for what in left_out(image))

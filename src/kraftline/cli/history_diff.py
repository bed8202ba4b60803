"""`kraftline history diff`: what is different between two moments of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftline.cli import lake as lakes
from kraftline.cli import metadata_log
from kraftline.cli.options import PATH, format_option

if TYPE_CHECKING:
    from kraftline.inspect.cluster.telling import Told
    from kraftline.inspect.moments import Moment
    from kraftline.lake.coverage import Place, Standing
    from kraftline.lake.lake import Lake

_TABLES = (
    "topics",
    "partitions",
    "brokers",
    "controllers",
    "configs",
    "acls",
    "client_quotas",
    "scram",
    "features",
    "producer_ids",
    "delegation_tokens",
)


@click.command(name="diff")
@click.argument("path", type=PATH, metavar="LAKE")
@click.argument("first", metavar="A", callback=metadata_log.moment)
@click.argument("second", metavar="B", callback=metadata_log.moment)
@click.option(
    "--table", type=click.Choice(_TABLES), help="Rows of this table, as they were and are."
)
@lakes.cluster_option
@lakes.topic_option
@lakes.broker_option
@click.option("--all", "everything", is_flag=True, help="Every change: nothing is folded.")
@format_option
def command(
    path: str,
    first: Moment,
    second: Moment,
    table: str | None,
    clusters: tuple[str, ...],
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    everything: bool,
    form: str,
) -> None:
    """Say what is different in LAKE between the moments A and B: offsets (digits) or times.

    Only the two states count, not what happened between them (for that: `kraftline history
    changes`). In words, as `kraftline diff` says it; with --table, as rows: the columns that name
    one, "change", and every other column as before_ and after_ it.

    Exit code 0: fine, different or not; 2: not a lake, or no answer for those moments.

    \b
    Examples:
      kraftline history diff lake 120000 184467
      kraftline history diff lake 2026-03-01T03:00Z 2026-03-01T03:30Z --topic orders
      kraftline history diff lake 120000 184467 --table configs --format csv
    """
    with lakes.opened(path) as lake:
        from kraftline.lake.coverage import stand_at_both

        before, after = stand_at_both(lake, first, second, clusters)
        if table is not None:
            _rows(lake, table, before, after, topics, brokers, form)
        else:
            pairs = list(zip(before.places, after.places, strict=True))
            _words(lake, pairs, topics, brokers, everything, form)
        lakes.say(dict.fromkeys((*before.notes, *after.notes)))


def _rows(
    lake: Lake,
    table: str,
    before: Standing,
    after: Standing,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    form: str,
) -> None:
    from kraftline.inspect.cluster.layout import leaf
    from kraftline.lake.queries import Chosen, compared_in, named_by
    from kraftline.lake.questions import difference, rows_of
    from kraftline.lake.tables import TABLES

    chosen = Chosen(topics, brokers)
    found = difference(lake, table, before, after, chosen)
    rows = rows_of(found)
    if not rows:
        lakes.say_unknown(lake, table, chosen)
    if form != "table":
        metadata_log.write_rows(rows, form, found.column_names)
        return
    own = TABLES[table]
    several = len({row["cluster_id"] for row in rows}) > 1
    named = [each for each in named_by(own) if several or each != "cluster_id"]

    def different(row: Any) -> str:
        if row["change"] != "changed":
            side = "after" if row["change"] == "added" else "before"
            said = {each: row[f"{side}_{each}"] for each in compared_in(own)}
            return ", ".join(f"{name}: {leaf(value)}" for name, value in said.items() if value)
        return ", ".join(
            f"{each}: {leaf(row[f'before_{each}'])} -> {leaf(row[f'after_{each}'])}"
            for each in compared_in(own)
            if row[f"before_{each}"] != row[f"after_{each}"]
        )

    columns = {each.replace("_", " "): _cell(each) for each in (*named, "change")}
    lakes.write_table({**columns, "different": different}, rows)


def _cell(column: str) -> Any:
    from kraftline.inspect.cluster.layout import leaf

    return lambda row: leaf(row[column])


def _words(
    lake: Lake,
    pairs: list[tuple[Place, Place]],
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    everything: bool,
    form: str,
) -> None:
    from kraftline.inspect.cluster.difference import difference
    from kraftline.inspect.cluster.folding import fold_changes
    from kraftline.inspect.cluster.printing import COLUMNS, as_object, difference_lines
    from kraftline.inspect.cluster.story import Filter
    from kraftline.lake.image import image_at

    wanted = Filter(topics, brokers, (), everything or form != "table")
    pen = metadata_log.pen()
    objects: list[dict[str, Any]] = []
    for number, (first, second) in enumerate(pairs):
        before, after = image_at(lake, first), image_at(lake, second)
        changes = [each for each in difference(before, after) if wanted.wants(each)]
        few = len(changes) if everything or form != "table" else 3
        told: list[Told] = fold_changes(changes, few=few)
        if form != "table":
            objects += [{"cluster_id": first.cluster_id, **as_object(one)} for one in told]
            continue
        head = f"From offset {before.offset} to offset {after.offset}"
        if len(pairs) > 1:
            head = f"Cluster {first.cluster_id}: {head[0].lower()}{head[1:]}"
        metadata_log.write_lines(
            [
                *([""] if number else []),
                pen.bold(head),
                *(difference_lines(told, pen) if told else ["", "No difference."]),
            ]
        )
    if form != "table":
        metadata_log.write_rows(objects, form, ("cluster_id", *COLUMNS[2:]))

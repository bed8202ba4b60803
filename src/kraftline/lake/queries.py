"""Questions to a lake as SQL: text that DataFusion runs for the command line and Spark for History.

Tables go by their own names, behind a prefix if one is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraftline.inspect.moments import AtOffset, AtTime, Moment
from kraftline.lake import sql
from kraftline.lake.coverage import NoAnswer, Place, Standing, Window
from kraftline.lake.tables import CHANGES, HEALTH, OPEN, TABLES, Table

# Their offsets are those of another log.
OF_GROUPS = ("groups", "group_offsets")
_VALIDITY = (
    "valid_from_offset",
    "valid_from_time",
    "valid_to_offset",
    "valid_to_time",
    "committed",
    "state",
)
_BROKERS = {"controllers": "controller", "topic_sizes": "node"}


class Chosen(msgspec.Struct, frozen=True):
    """Which rows are wanted: topics by name or pattern, brokers, kinds by code or first part.

    `topic_ids` are those that the topics ever had, where somebody has looked them up: files are in
    their order, so most can be skipped.
    """

    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    topic_ids: tuple[str, ...] = ()


EVERYTHING = Chosen()


def as_of(table: Table, standing: Standing, chosen: Chosen = EVERYTHING, prefix: str = "") -> str:
    """The rows of a history table that were true at a moment."""
    return _select(table, sql.all_of([_true_at(table, standing), *_wanted(table, chosen)]), prefix)


def difference(
    table: Table,
    before: Standing,
    after: Standing,
    chosen: Chosen = EVERYTHING,
    prefix: str = "",
) -> str:
    """What is different between two moments: the columns that name a row, `change` (added, removed
    or changed), and every other column as `before_` and `after_` it."""
    names, compared = named_by(table), compared_in(table)
    filters = _wanted(table, chosen)
    sides = [
        f"(SELECT * FROM {sql.name(prefix + table.name)} WHERE "
        f"{sql.all_of([_true_at(table, standing), *filters])})"
        for standing in (before, after)
    ]
    keys = [sql.name(each) for each in ("cluster_id", *table.keys)]
    columns = [
        *(
            f"coalesce(b.{sql.name(each)}, a.{sql.name(each)}) AS {sql.name(each)}"
            for each in names
        ),
        "CASE WHEN a.cluster_id IS NULL THEN 'added' WHEN b.cluster_id IS NULL THEN 'removed' "
        "ELSE 'changed' END AS change",
        *(f"a.{sql.name(each)} AS {sql.name(f'before_{each}')}" for each in compared),
        *(f"b.{sql.name(each)} AS {sql.name(f'after_{each}')}" for each in compared),
    ]
    differs = [
        "a.cluster_id IS NULL",
        "b.cluster_id IS NULL",
        *(f"(a.{sql.name(each)} IS DISTINCT FROM b.{sql.name(each)})" for each in compared),
    ]
    return (
        f"SELECT {', '.join(columns)} FROM {sides[0]} a FULL OUTER JOIN {sides[1]} b "
        f"ON {sql.all_of(f'a.{key} = b.{key}' for key in keys)} "
        f"WHERE {sql.any_of(differs)} ORDER BY {_ordered(names)}"
    )


def named_by(table: Table) -> tuple[str, ...]:
    """The columns that name a row; a topic's name is as good as its id, and people know it."""
    known_by_name = "topic_id" in table.keys and "topic" in table.columns.names
    return ("cluster_id", *(("topic",) if known_by_name else ()), *table.keys)


def compared_in(table: Table) -> tuple[str, ...]:
    """The columns that may be different."""
    told = (*named_by(table), *_VALIDITY)
    return tuple(each for each in table.columns.names if each not in told)


def changes(window: Window, chosen: Chosen = EVERYTHING, prefix: str = "") -> str:
    """Rows of `changes`, in the order of their times."""
    limits = []
    if window.since is not None:
        limits.append(f"{_limit(window.since, 'offset', 'time', '>=')}")
    if window.until is not None:
        limits.append(f"{_limit(window.until, 'offset', 'time', '<=')}")
    where = sql.all_of([_clusters(window), *limits, *_wanted(CHANGES, chosen)])
    return _select(CHANGES, where, prefix, ("time", "cluster_id", "offset", "subject", "kind"))


def health(window: Window, chosen: Chosen = EVERYTHING, prefix: str = "") -> str:
    """Rows of `health` that were true at any time of a window, in the order of their times."""
    limits = []
    if window.since is not None:
        end = "valid_to_offset", "valid_to_time"
        still = sql.name(end[0] if isinstance(window.since, AtOffset) else end[1])
        limits.append(f"({still} IS NULL OR {_limit(window.since, *end, '>')})")
    if window.until is not None:
        limits.append(_limit(window.until, "valid_from_offset", "valid_from_time", "<="))
    where = sql.all_of([_clusters(window), *limits, *_wanted(HEALTH, chosen)])
    order = ("valid_from_time", "cluster_id", "valid_from_offset")
    return _select(HEALTH, where, prefix, (*order, "kind", "topic", "partition", "broker"))


def timeline(topic: str, clusters: Sequence[str] = (), prefix: str = "") -> str:
    """All that happened to a topic, in order: its changes, and what was wrong from when to when.

    Columns: cluster_id, offset, time, until (null: a change, or still so), kind, partition, text.
    """
    where = sql.all_of([_clusters(Window(clusters=tuple(clusters))), sql.one_of("topic", [topic])])
    return (
        "SELECT * FROM ("
        "SELECT cluster_id, `offset`, `time`, CAST(NULL AS TIMESTAMP) AS until, kind, `partition`, "
        f"`text` FROM {sql.name(prefix + 'changes')} WHERE {where} UNION ALL "
        "SELECT cluster_id, valid_from_offset AS `offset`, valid_from_time AS `time`, "
        "valid_to_time AS until, kind, `partition`, detail AS `text` "
        f"FROM {sql.name(prefix + 'health')} WHERE {where}) told "
        f"ORDER BY {_ordered(('time', 'cluster_id', 'offset', 'partition', 'kind'))}"
    )


def whole(table: Table, clusters: Sequence[str], chosen: Chosen, prefix: str = "") -> str:
    """All rows of a table that has no moments: those of some clusters, else of all."""
    where = sql.all_of([_clusters(Window(clusters=tuple(clusters))), *_wanted(table, chosen)])
    return _select(table, where, prefix)


def any_row(table: Table, chosen: Chosen, prefix: str = "") -> str:
    """A row, if there ever was one of that choice."""
    where = sql.all_of(_wanted(table, chosen))
    return f"SELECT cluster_id FROM {sql.name(prefix + table.name)} WHERE {where} LIMIT 1"


def kinds_in(table: Table, prefix: str = "") -> str:
    """The kinds that there are, by name."""
    return f"SELECT DISTINCT kind FROM {sql.name(prefix + table.name)} ORDER BY kind"


def _select(table: Table, where: str, prefix: str, order: Sequence[str] = ()) -> str:
    columns = ", ".join(map(sql.name, table.columns.names))
    return (
        f"SELECT {columns} FROM {sql.name(prefix + table.name)} WHERE {where} "
        f"ORDER BY {_ordered(order or named_by(table))}"
    )


def _ordered(columns: Sequence[str]) -> str:
    return ", ".join(f"{sql.name(each)} NULLS FIRST" for each in columns)


def _true_at(table: Table, standing: Standing) -> str:
    if not table.is_history:
        raise NoAnswer(f"{table.name} does not say when its rows were true; query it as it is")
    if table.name in OF_GROUPS:
        return _groups_true_at(standing)
    conditions: dict[str, list[str]] = {}
    for place in standing.places:
        conditions.setdefault(_true(place), []).append(place.cluster_id)
    return sql.any_of(
        f"({sql.one_of('cluster_id', clusters)} AND {condition})"
        for condition, clusters in conditions.items()
    )


def _true(place: Place) -> str:
    if place.at_end:
        return sql.one_of("state", [OPEN])
    if place.offset is not None:
        at = str(place.offset)
        return f"valid_from_offset <= {at} AND (valid_to_offset IS NULL OR valid_to_offset > {at})"
    assert place.time is not None
    said = _true_at_time(place.time)
    if place.within is not None:
        said += (
            f" AND valid_from_offset <= {place.within.last_offset} AND "
            f"(valid_to_offset IS NULL OR valid_to_offset > {place.within.first_offset})"
        )
    return said


def _true_at_time(time: int) -> str:
    at = sql.time(time)
    return f"valid_from_time <= {at} AND (valid_to_time IS NULL OR valid_to_time > {at})"


def _groups_true_at(standing: Standing) -> str:
    match standing.moment:
        case None:
            said = sql.one_of("state", [OPEN])
        case AtTime(time=time):
            said = _true_at_time(time)
        case AtOffset():
            raise NoAnswer("groups are known by time: an offset is one of the metadata log")
    return sql.all_of([_clusters(Window(clusters=standing.clusters)), said])


def _clusters(window: Window) -> str:
    return sql.one_of("cluster_id", window.clusters) if window.clusters else ""


def _limit(moment: Moment, offset: str, time: str, compared: str) -> str:
    match moment:
        case AtOffset(offset=at):
            return f"{sql.name(offset)} {compared} {at}"
        case AtTime(time=ms):
            return f"{sql.name(time)} {compared} {sql.time(ms)}"
    raise AssertionError(moment)


def _wanted(table: Table, chosen: Chosen) -> list[str]:
    said = []
    if chosen.topics:
        said.append(_topics(table, chosen.topics))
        if chosen.topic_ids and "topic_id" in table.columns.names:
            said.append(sql.one_of("topic_id", chosen.topic_ids))
    if chosen.brokers:
        said.append(_brokers(table, chosen.brokers))
    if chosen.kinds:
        if "kind" not in table.columns.names:
            raise NoAnswer(f"{table.name} has no kinds to choose by")
        said.append(sql.any_of(map(_kind, chosen.kinds)))
    return said


def _topics(table: Table, topics: Sequence[str]) -> str:
    if "topic" in table.columns.names:
        return sql.like("topic", topics)
    if table.name in ("configs", "acls"):
        kind = "topic" if table.name == "configs" else "TOPIC"
        return f"{sql.one_of('resource_type', [kind])} AND {sql.like('resource', topics)}"
    raise NoAnswer(f"{table.name} has no topics to choose by")


def _brokers(table: Table, brokers: Sequence[int]) -> str:
    column = _BROKERS.get(table.name, "broker")
    if table.name == "partitions":
        return sql.any_of(f"array_contains(replicas, {each})" for each in brokers)
    if table.name == "configs":
        names = [str(each) for each in brokers]
        kinds = sql.one_of("resource_type", ["broker", "broker-logger"])
        return f"{kinds} AND {sql.one_of('resource', names)}"
    if column not in table.columns.names:
        raise NoAnswer(f"{table.name} has no brokers to choose by")
    said = [sql.one_of(column, brokers)]
    if table is CHANGES:
        # A leader that moves has two of them.
        names = [str(each) for each in brokers]
        either = sql.any_of([sql.one_of("before", names), sql.one_of("after", names)])
        said.append(f"({_kind('leader')} AND {either})")
    return sql.any_of(said)


def _kind(kind: str) -> str:
    start = f"{kind}."
    begins = f"substr(kind, 1, {len(start)}) = {sql.text(start)}"
    return sql.any_of([sql.one_of("kind", [kind]), begins])


def topic_ids(topics: Sequence[str], prefix: str = "") -> str:
    """The ids that topics ever had, in any cluster."""
    table = sql.name(prefix + TABLES["topics"].name)
    return f"SELECT DISTINCT topic_id FROM {table} WHERE {sql.like('topic', topics)}"

"""What changed, in words: like changes of one moment and one cause become one line."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.report.tables import micros
from kraftline.report.window import SECOND, Window

# So many of one kind are told one by one: a handful says more than a count.
_FEW = 3
_MOST = 1200
_FEW_HUNDRED = 300
_TOGETHER = 2 * SECOND
# Follows from other changes, or is bookkeeping.
_MINOR = (
    "directory.assigned",
    "elr.changed",
    "elr.last-known",
    "isr.reordered",
    "leader.epoch",
    "producer-ids.allocated",
)
# What people did, and what hurts: these stay where a list has to be cut.
_WEIGHTY = (
    "topic.",
    "config.",
    "broker.",
    "feature.",
    "leader.unclean",
    "leader.lost",
    "directory.",
)
_MANY = {
    "leader.moved": "leaders moved",
    "leader.lost": "partitions lost their leader",
    "leader.elected": "partitions have a leader again",
    "leader.unclean": "unclean elections: records may be lost",
    "leader.recovered": "partitions recovered from an unclean election",
    "isr.shrank": "partitions have fewer replicas in sync",
    "isr.grew": "partitions have a replica more in sync",
    "isr.changed": "partitions have other replicas in sync",
    "topic.created": "topics created",
    "topic.deleted": "topics deleted",
    "feature.set": "features set",
    "feature.raised": "features raised",
    "broker.registered": "brokers registered",
    "broker.fenced": "brokers were fenced",
    "broker.unfenced": "brokers are in service",
    "scram.set": "credentials set",
    "quota.set": "quotas set",
    "acl.added": "ACLs added",
    "acl.removed": "ACLs removed",
    "config.set": "configs set",
    "config.changed": "configs changed",
    "config.removed": "configs removed",
    "reassignment.started": "reassignments started",
    "reassignment.completed": "reassignments completed",
    "reassignment.cancelled": "reassignments cancelled",
    "reassignment.redirected": "reassignments given another target",
}


class Line(Struct, frozen=True):
    """`count` changes that one sentence tells of."""

    time: int
    offset: int
    kind: str
    text: str
    count: int
    committed: bool


class Noted(Struct, frozen=True):
    """All changes of one kind: how many, when, some of what was changed and some of the words."""

    count: int
    first: int
    last: int
    subjects: list[str]
    texts: list[str]


class Changes(Struct, frozen=True):
    """`total` is of all changes in the window, bookkeeping left out; `told` of those in lines."""

    total: int
    told: int
    lines: list[Line]
    noted: dict[str, Noted]


def changes(table: pa.Table, window: Window) -> Changes:
    times = micros(table["time"])
    mine = pc.and_(
        pc.and_(pc.greater_equal(times, window.start), pc.less_equal(times, window.end)),
        pc.invert(pc.is_in(table["kind"], pa.array(_MINOR))),
    )
    rows = table.append_column("at", times).filter(mine)
    rows = rows.sort_by([("at", "ascending"), ("offset", "ascending")])
    lines = _lines(rows, max(_TOGETHER, window.length // _MOST))
    kept = _weightiest(lines)
    return Changes(
        total=rows.num_rows,
        told=pc.sum(kept["count"]).as_py() or 0,
        lines=[Line(**row) for row in kept.to_pylist()],
        noted={kind: _noted(rows.filter(pc.equal(rows["kind"], kind))) for kind in _kinds(rows)},
    )


def _kinds(rows: pa.Table) -> list[str]:
    found: list[str] = pc.unique(rows["kind"]).to_pylist()
    return sorted(found)


def _noted(rows: pa.Table) -> Noted:
    times = pc.min_max(rows["at"]).as_py()
    some = rows.slice(0, _FEW_HUNDRED)
    return Noted(
        count=rows.num_rows,
        first=times["min"],
        last=times["max"],
        subjects=list(dict.fromkeys(some["subject"].to_pylist())),
        texts=some["text"].to_pylist(),
    )


def _lines(rows: pa.Table, together: int) -> pa.Table:
    """A row per line: time, offset, kind, text, count, committed."""
    slot = pc.divide(rows["at"], together)
    cause = pc.fill_null(rows["cause"], "")
    # Where no cause is known, what the change was of tells more than a number.
    alone = pc.if_else(
        pc.starts_with(rows["kind"], "config."), pc.fill_null(rows["name"], ""), cause
    )
    rows = rows.append_column("slot", slot).append_column("why", alone)
    rows = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    groups = rows.group_by(["slot", "kind", "why"], use_threads=False).aggregate(
        [
            ("at", "min"),
            ("offset", "min"),
            ("row", "list"),
            ([], "count_all"),
            ("committed", "min"),
        ]
    )
    is_few = pc.less_equal(groups["count_all"], _FEW)
    many = groups.filter(pc.invert(is_few))
    single = rows.take(pc.list_flatten(groups.filter(is_few)["row_list"]))
    return pa.concat_tables([_told_alone(single), _told_together(many, rows)]).sort_by(
        [("time", "ascending"), ("offset", "ascending")]
    )


_LINE = ("time", "offset", "kind", "text", "count", "committed")


def _told_alone(rows: pa.Table) -> pa.Table:
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    columns = [rows["at"], rows["offset"], rows["kind"], rows["text"], ones, rows["committed"]]
    return pa.table(dict(zip(_LINE, columns, strict=True)))


def _told_together(groups: pa.Table, rows: pa.Table) -> pa.Table:
    some = pc.list_slice(groups["row_list"], 0, _FEW)
    subjects = rows["subject"].take(pc.list_flatten(some)).to_pylist()
    texts = [
        _sentence(kind, why, count, subjects[_FEW * place : _FEW * (place + 1)])
        for place, (kind, why, count) in enumerate(
            zip(
                groups["kind"].to_pylist(),
                groups["why"].to_pylist(),
                groups["count_all"].to_pylist(),
                strict=True,
            )
        )
    ]
    columns = [
        groups["at_min"],
        groups["offset_min"],
        groups["kind"],
        pa.array(texts, pa.string()),
        groups["count_all"],
        groups["committed_min"],
    ]
    return pa.table(dict(zip(_LINE, columns, strict=True)))


def _sentence(kind: str, why: str, count: int, subjects: list[str | None]) -> str:
    what = _MANY.get(kind, f"changes of the kind {kind}")
    if kind.startswith("config."):
        what, because = what.replace("configs", f"configs {why}" if why else "configs"), ""
    else:
        because = f" because {why}" if why else ""
    names = [subject.removeprefix("topic ") for subject in dict.fromkeys(subjects) if subject]
    named = f": {', '.join(names)} and others" if names else ""
    return f"{count:,} {what}{because}{named}"


def _weightiest(lines: pa.Table) -> pa.Table:
    if lines.num_rows <= _MOST:
        return lines
    weighty = pa.array([False] * lines.num_rows)
    for kind in _WEIGHTY:
        weighty = pc.or_(weighty, pc.starts_with(lines["kind"], kind))
    weight = pc.add(pc.multiply(pc.cast(weighty, "int64"), 1 << 40), lines["count"])
    kept = lines.append_column("weight", weight)
    kept = kept.sort_by([("weight", "descending"), ("time", "ascending")]).slice(0, _MOST)
    return kept.drop_columns(["weight"]).sort_by([("time", "ascending"), ("offset", "ascending")])

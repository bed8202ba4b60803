"""An image as a person reads it: what it is of, what is wrong, then section by section."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from kraftline.inspect.cluster.health import (
    OFFLINE,
    TROUBLES,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    Health,
)
from kraftline.inspect.cluster.layout import Pen, leaf, table, tree
from kraftline.inspect.cluster.printing import Known, remarks
from kraftline.inspect.cluster.sections import SECTIONS, Row, View, topic_partitions
from kraftline.inspect.moments import show_moment, show_time
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.words import quota_value
from kraftline.metadata.words.values import config_value, is_secret, plural

_MOST = 40
# What a table shows of a section's rows; all of it is in the other formats.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "features": ("feature", "level", "name"),
    "voters": ("voter", "endpoints", "directory"),
    "controllers": ("controller", "endpoints"),
    "brokers": ("broker", "state", "rack", "leads", "replicas", "epoch", "dirs", "endpoints"),
    "topics": ("topic", "partitions", "replicas", "min isr", "leaders", "troubles"),
    "troubles": ("partition", "leader", "replicas", "in sync", "down", "troubles"),
    "partitions": ("partition", "leader", "replicas", "in sync", "elr", "epoch", "troubles"),
    "configs": ("resource", "key", "value"),
    "quotas": ("entity", "key", "value"),
    "acls": ("acl",),
    "scram": ("user", "mechanism", "iterations"),
    "tokens": ("owner", "requester", "renewers", "issued", "expires", "token"),
    "producer-ids": ("next producer id",),
}
_TITLES = {
    "voters": "Voters of the quorum",
    "troubles": "Partitions in trouble",
    "acls": "ACLs",
    "scram": "SCRAM users",
    "tokens": "Delegation tokens",
    "producer-ids": "Producer ids",
}
_NONE = {"voters": "none in the log: controller.quorum.voters of every node names them"}
_RIGHT = (
    *("broker", "controller", "voter", "level", "leads", "partitions", "epoch", "iterations"),
    "min isr",
)
# In the overview only where there is something to see.
_OVERVIEW = tuple(name for name in SECTIONS if name != "partitions")


def image_text(
    view: View,
    history: Known,
    pen: Pen,
    *,
    sections: Sequence[str] = (),
    quick: bool = False,
    more: Callable[[str], str] = "--section {}".format,
) -> Iterator[str]:
    """The whole as lines; `sections` picks some, with all their rows. `more` says how to see all
    of a section."""
    yield from heading(view.image, history, pen, quick=quick)
    for name in sections or _OVERVIEW:
        rows = list(SECTIONS[name](view))
        if rows or sections:
            yield ""
            yield from section_text(
                name, rows, pen, all_rows=bool(sections), secrets=view.secrets, more=more(name)
            )


def heading(
    image: MetadataImage, history: Known, pen: Pen, *, quick: bool = False
) -> Iterator[str]:
    where = image.provenance
    yield pen.bold(f"The cluster as of {show_moment(where.last_offset, where.last_log_time_ms)}")
    yield f"  {_summary(image)}"
    for line in remarks(history, where.last_offset, quick=quick):
        yield pen.dim(f"  {line}")


def _summary(image: MetadataImage) -> str:
    states = Counter(
        "fenced" if broker.fenced else "in service" for broker in image.cluster.brokers.values()
    )
    count = sum(len(topic.partitions) for topic in image.topics.by_id.values())
    said = [f"{plural(len(image.cluster.brokers), 'broker')}"]
    if states["fenced"]:
        said[0] += f" ({states['fenced']} fenced)"
    said.append(f"{plural(len(image.topics.by_id), 'topic')} with {plural(count, 'partition')}")
    version = image.features.metadata_version
    if version is not None:
        said.append(f"metadata.version {version.name}")
    return ", ".join(said)


def section_text(
    name: str, rows: list[Row], pen: Pen, *, all_rows: bool, secrets: bool, more: str
) -> Iterator[str]:
    title = _TITLES.get(name, name.capitalize())
    yield pen.bold(f"{title} ({len(rows):,})")
    if not rows:
        yield f"  {_NONE.get(name, 'none')}"
        return
    shown = rows if all_rows else rows[:_MOST]
    columns = _COLUMNS[name]
    if name == "scram" and secrets:
        columns += ("salt", "stored_key", "server_key")
    cells = [[_cell(name, column, row) for column in columns] for row in shown]
    for line in table(columns, cells, pen, right=_RIGHT):
        yield f"  {line}"
    if len(shown) < len(rows):
        yield pen.dim(f"  … and {len(rows) - len(shown):,} more: {more}")


def _cell(section: str, column: str, row: Row) -> str:
    match section, column:
        case (("troubles" | "partitions"), "partition"):
            return f"{row['topic']}-{row['partition']}"
        case _, "in sync":
            return leaf(row["isr"])
        case "partitions", "epoch":
            return str(row["leader_epoch"])
        case (("troubles" | "partitions"), "leader"):
            return "none" if row["leader"] is None else str(row["leader"])
        case "brokers", "dirs":
            dirs = str(len(row["directories"])) if row["directories"] else "-"
            return f"{dirs} ({len(row['cordoned'])} cordoned)" if row["cordoned"] else dirs
        case "topics", "leaders":
            return _few(["none" if each < 0 else str(each) for each in row["leaders"]])
        case "topics", "min isr":
            return str(row["min_isr"])
        case "topics", "troubles":
            said = {what: row["troubles"].get(what, 0) for what in TROUBLES}
            if said[OFFLINE]:
                # Nobody in sync goes without saying.
                for what in (UNDER_MIN_ISR, UNDER_REPLICATED):
                    said[what] -= min(said[what], said[OFFLINE])
            return ", ".join(f"{count} {what}" for what, count in said.items() if count) or "-"
        case (("troubles" | "partitions"), "troubles"):
            implied = (UNDER_MIN_ISR, UNDER_REPLICATED) if OFFLINE in row["troubles"] else ()
            return leaf([each for each in row["troubles"] if each not in implied])
        case "configs", "value":
            return _config(row["key"], row["value"])
        case "quotas", "value":
            return quota_value(row["key"], row["value"])
        case "tokens", ("issued" | "expires"):
            return show_time(row[column])
        case "producer-ids", _:
            return str(row["next_producer_id"])
    return leaf(row[column])


def _config(key: str, raw: str) -> str:
    # Whether a secret is shown was decided when the row was made.
    said = raw if is_secret(key) else config_value(key, raw)
    return said if said == raw else f"{said} ({raw})"


def _few(names: list[str]) -> str:
    if len(names) <= 8:
        return ", ".join(names)
    return f"{', '.join(names[:6])} … ({len(names)} brokers)"


def image_tree(view: View) -> Iterator[str]:
    """Every section as a branch, every row as one below it."""
    return tree(as_tree(view), "image")


def _topic_branch(topic: TopicImage, health: Health) -> dict[str, Any]:
    partitions = {}
    for row in topic_partitions(topic, health):
        del row["topic"]
        number = str(row.pop("partition"))
        partitions[number] = {key: value for key, value in row.items() if value not in ([], {})}
    return {"id": str(topic.id), "partitions": partitions}


def as_tree(view: View) -> dict[str, Any]:
    where = view.image.provenance
    out: dict[str, Any] = {
        "provenance": {
            "last offset": where.last_offset,
            "last epoch": where.last_epoch,
            "last time": show_time(where.last_log_time_ms),
        },
        "features": {row["feature"]: row["level"] for row in SECTIONS["features"](view)},
    }
    for section, key in (
        ("voters", "voter"),
        ("controllers", "controller"),
        ("brokers", "broker"),
    ):
        rows = SECTIONS[section](view)
        out[section] = {str(row.pop(key)): row for row in rows}
    health = Health(view.image)
    topics = sorted(view.image.topics.by_id.values(), key=lambda each: each.name)
    out["topics"] = {topic.name: partial(_topic_branch, topic, health) for topic in topics}
    for section, keys in (("configs", ("resource", "key")), ("quotas", ("entity", "key"))):
        nested: dict[str, Any] = {}
        for row in SECTIONS[section](view):
            nested.setdefault(row[keys[0]], {})[row[keys[1]]] = row["value"]
        out[section] = nested
    out["acls"] = {row["id"]: row["acl"] for row in SECTIONS["acls"](view)}
    users: dict[str, Any] = {}
    for row in SECTIONS["scram"](view):
        users.setdefault(row.pop("user"), {})[row.pop("mechanism")] = row
    out["scram"] = users
    tokens = SECTIONS["tokens"](view)
    out["tokens"] = {f"{at} of {row['owner']}": row for at, row in enumerate(tokens, 1)}
    for row in SECTIONS["producer-ids"](view):
        out["producer ids"] = row
    return {name: value for name, value in out.items() if value not in ({}, [])}

"""Configs that differ from Kafka's defaults at the end of the window, and since when."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.config.tables import BROKER, TOPIC
from kraftline.metadata.words.values import HIDDEN, config_value
from kraftline.report import spans
from kraftline.report.window import Window

_MOST = 60
_NAMES = 5
_KEYS = {"topic": TOPIC, "broker": BROKER}


class Setting(Struct, frozen=True):
    """One value on one or many resources; `owners` are some of the `count`.

    `since` is when the last of them got it, None where that was before the data begins.
    """

    name: str
    value: str
    default: str
    owners: list[str]
    count: int
    since: int | None


class Configs(Struct, frozen=True):
    settings: list[Setting]
    left_out: int


def configs(table: pa.Table, window: Window) -> Configs:
    began = pc.cast(table["valid_from_time"], pa.int64())
    rows = spans.within(table.append_column("began", began), window)
    rows = rows.filter(rows["ongoing"])
    value = pc.if_else(pc.fill_null(rows["is_secret"], False), HIDDEN, rows["value"])
    rows = rows.set_column(rows.schema.get_field_index("value"), "value", value)
    grouped = rows.group_by(["resource_type", "name", "value"], use_threads=False).aggregate(
        [("began", "max"), ("resource", "list"), ([], "count_all")]
    )
    ranked = grouped.sort_by([("began_max", "descending"), ("name", "ascending")])
    different = [row for row in ranked.to_pylist() if row["value"] != _default(row)]
    return Configs(
        [_setting(row, window) for row in different[:_MOST]], max(0, len(different) - _MOST)
    )


def _default(row: dict[str, str]) -> str | None:
    key = _KEYS.get(row["resource_type"], {}).get(row["name"])
    return None if key is None else key.default


def _setting(row: dict[str, object], window: Window) -> Setting:
    kind, name, began, resources = (
        str(row["resource_type"]),
        str(row["name"]),
        row["began_max"],
        row["resource_list"],
    )
    assert isinstance(began, int)
    assert isinstance(resources, list)
    default = _KEYS.get(kind, {}).get(name)
    value = row["value"]
    return Setting(
        name=name,
        value=config_value(name, None if value is None else str(value)),
        default="" if default is None else config_value(name, default.default),
        owners=[_owner(kind, each) for each in sorted(resources)[:_NAMES]],
        count=len(resources),
        since=began if began > window.known_from else None,
    )


def _owner(kind: str, resource: str) -> str:
    return f"{kind} {resource}" if resource else f"all {kind}s"

"""What a reader of metadata can ask for: the options of `kraft_metadata`, checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from kraftline.spark.record_table import struct_name, struct_types
from kraftline.spark.sources.segment_options import SPLIT_BYTES, BadOption

_NAMES: Final = ("path", "paths", "clusterId", "payload", "structs", "onDamage", "splitBytes")
_OTHER_NAMES: Final = {"cluster_id": "clusterId"}


class MetadataOptions(Struct, frozen=True, kw_only=True):
    """`structs` are record types that get a column of their own."""

    paths: tuple[str, ...]
    cluster_id: str | None = None
    payload: bool = True
    structs: tuple[str, ...] = ()
    skip_damage: bool = False
    split_bytes: int = SPLIT_BYTES


def parse_options(given: Mapping[str, str]) -> MetadataOptions:
    """The options as Spark hands them over, whatever the case of their names."""
    known = {name.lower(): name for name in _NAMES} | _OTHER_NAMES
    found: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, 1)
            hint = f"; did you mean {known[near[0]]}?" if near else f": {', '.join(_NAMES)}"
            raise BadOption(f"kraft_metadata has no option {name}{hint}")
        found[known[name.lower()]] = value
    size = found.get("splitBytes", str(SPLIT_BYTES))
    if not (size.isascii() and size.isdigit() and int(size) > 0):
        raise BadOption(f"splitBytes is {size!r}, where a number above 0 is expected")
    return MetadataOptions(
        paths=_paths(found),
        cluster_id=found.get("clusterId"),
        payload=_one_of(found, "payload", ("json", "none")) == "json",
        structs=_structs(found.get("structs", "none")),
        skip_damage=_one_of(found, "onDamage", ("fail", "skip")) == "skip",
        split_bytes=int(size),
    )


def _paths(found: Mapping[str, str]) -> tuple[str, ...]:
    paths = [found["path"]] if found.get("path") else []
    if found.get("paths"):  # what `load([…])` becomes
        paths += msgspec.json.decode(found["paths"], type=list[str])
    if not paths:
        raise BadOption('kraft_metadata needs a path: spark.read.format("kraft_metadata").load(…)')
    return tuple(paths)


def _one_of(found: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    value = found.get(name, values[0]).lower()
    if value not in values:
        raise BadOption(f"{name} is {found[name]!r}, where it may be {' or '.join(values)}")
    return value


def _structs(text: str) -> tuple[str, ...]:
    """`all`, `none`, or types by name: `TOPIC_RECORD, partition`."""
    if text.lower() in ("all", "none"):
        return tuple(struct_types()) if text.lower() == "all" else ()
    by_name = {struct_name(each): each for each in struct_types()}
    chosen = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name = struct_name(part.upper())
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, 1)
            hint = f"; did you mean {near[0]}?" if near else f": {', '.join(by_name)}"
            raise BadOption(f"structs names {part!r}, which no record type with fields is{hint}")
        chosen.append(by_name[name])
    return tuple(chosen)

"""What a reader of metadata can ask for: the options of `kraft_metadata`, checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kraftline.spark.record_table import struct_name, struct_types
from kraftline.spark.sources.options import (
    SPLIT_BYTES,
    BadOption,
    known_options,
    number,
    one_of,
    paths_of,
)

NAMES: Final = ("path", "paths", "clusterId", "payload", "structs", "onDamage", "splitBytes")
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
    found = known_options("kraft_metadata", given, NAMES, _OTHER_NAMES)
    return MetadataOptions(
        paths=paths_of("kraft_metadata", found),
        cluster_id=found.get("clusterId"),
        payload=one_of(found, "payload", ("json", "none")) == "json",
        structs=_structs(found.get("structs", "none")),
        skip_damage=one_of(found, "onDamage", ("fail", "skip")) == "skip",
        split_bytes=number(found, "splitBytes", least=1) or SPLIT_BYTES,
    )


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

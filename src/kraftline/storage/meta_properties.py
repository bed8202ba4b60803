"""`meta.properties`: which node and cluster a log directory belongs to.

Version 0 (ZooKeeper): broker.id, cluster.id. Version 1 (KRaft): cluster.id, node.id and, from
3.7, directory.id; a ZooKeeper broker that migrated may keep version 0 with a directory.id. A
Java properties file. Keys that this release does not know are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

from kraftline.config.properties import format_properties, read_properties
from kraftline.errors import Corrupt, Unsupported
from kraftline.schema.uuids import Uuid
from kraftline.storage.files import Path, Source, load, write_aside

NAME = "meta.properties"
_LIMIT = 1024 * 1024
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
# As Java's hash table happens to order them, so that our files look like Kafka's.
_ORDER = ("broker.id", "node.id", "directory.id", "version", "cluster.id")
# Up to this id a directory id has a meaning of its own (unassigned, lost, migrating).
_RESERVED_DIRECTORY_IDS = 100


class MetaProperties(msgspec.Struct, frozen=True, kw_only=True):
    """`node_id` is broker.id in version 0, where nothing is sure to be there."""

    version: int = 1
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: Uuid | None = None
    unknown: Mapping[str, str] = {}


def read_meta_properties(source: Source, *, any_directory_id: bool = False) -> MetaProperties:
    """`any_directory_id` leaves it to the caller to refuse one that is reserved."""
    data, file = load(source, _LIMIT)
    try:
        found = read_properties(data)
    except ValueError as error:
        raise Corrupt(f"not a Java properties file: {error}", file=file) from error
    version = _number(found, "version", file) if "version" in found else 0
    if version not in (0, 1):
        raise Unsupported(
            f"version {version} of {NAME}",
            file=file,
            hint="versions 0 (ZooKeeper) and 1 (KRaft) are known",
        )
    node_key = "broker.id" if version == 0 else "node.id"
    if version == 1:
        for key in ("cluster.id", "node.id"):
            if key not in found:
                raise Corrupt(
                    f"there is no {key}, which version 1 must have",
                    file=file,
                    hint="has the directory been formatted?",
                )
    directory_id = None
    if "directory.id" in found:
        try:
            directory_id = Uuid.parse(found["directory.id"])
        except ValueError as error:
            raise Corrupt(f"directory.id: {error}", file=file) from error
        if is_reserved(directory_id) and not any_directory_id:
            raise Corrupt(f"directory.id {found['directory.id']} is a reserved id", file=file)
    known = {"version", node_key, "cluster.id", "directory.id"}
    return MetaProperties(
        version=version,
        cluster_id=found.get("cluster.id"),
        node_id=_number(found, node_key, file) if node_key in found else None,
        directory_id=directory_id,
        unknown={key: value for key, value in found.items() if key not in known},
    )


def is_reserved(directory_id: Uuid) -> bool:
    return int.from_bytes(directory_id) < _RESERVED_DIRECTORY_IDS


def format_meta_properties(properties: MetaProperties, now: datetime | None = None) -> bytes:
    """The file's bytes, with the comment lines that Java puts first."""
    found = {"version": str(properties.version)}
    if properties.node_id is not None:
        found["broker.id" if properties.version == 0 else "node.id"] = str(properties.node_id)
    if properties.directory_id is not None:
        found["directory.id"] = str(properties.directory_id)
    if properties.cluster_id is not None:
        found["cluster.id"] = properties.cluster_id
    ordered = {key: found[key] for key in _ORDER if key in found} | dict(properties.unknown)
    return format_properties(ordered, now)


def write_meta_properties(path: Path, properties: MetaProperties) -> None:
    write_aside(path, format_meta_properties(properties))


def _number(found: Mapping[str, str], key: str, file: str | None) -> int:
    text = found[key].strip() if key == "version" else found[key]
    if _INTEGER.fullmatch(text) is None or not -(2**31) <= int(text) < 2**31:
        raise Corrupt(f"{key}={text[:80]!r} is not a number of 32 bits", file=file)
    return int(text)

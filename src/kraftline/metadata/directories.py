"""The log directories of one node, taken together: are they formatted, and do they agree?

`meta.properties` alone makes a directory formatted. A node asks `check_directories` before it
starts; formatting asks what is there already.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from kraftline.errors import BadData, KraftlineError, NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage import meta_properties
from kraftline.storage.files import vanished
from kraftline.storage.meta_properties import MetaProperties, is_reserved, read_meta_properties
from kraftline.storage.names import METADATA_TOPIC


class WrongDirectory(KraftlineError):
    """A log directory that this node must not start with; says which property disagrees."""


class ReadDirectories(msgspec.Struct, frozen=True, kw_only=True):
    """What meta.properties says of each directory, all sorted by path.

    `unreadable` (the disk, or no permission) and `broken` (what is in the file) have why.
    """

    formatted: Mapping[str, MetaProperties]
    unformatted: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = {}
    broken: Mapping[str, str] = {}


def read_directories(directories: Sequence[str]) -> ReadDirectories:
    """Read meta.properties of each; a directory that does not exist yet is unformatted."""
    formatted: dict[str, MetaProperties] = {}
    unformatted: list[str] = []
    unreadable: dict[str, str] = {}
    broken: dict[str, str] = {}
    for path in sorted(set(directories)):
        try:
            file = os.path.join(path, meta_properties.NAME)
            formatted[path] = read_meta_properties(file, any_directory_id=True)
        except NotKafka as error:
            if vanished(error):
                unformatted.append(path)
            else:
                unreadable[path] = str(error)
        except BadData as error:
            broken[path] = str(error)
    return ReadDirectories(
        formatted=formatted,
        unformatted=tuple(unformatted),
        unreadable=unreadable,
        broken=broken,
    )


def cluster_of(directories: Sequence[str]) -> str | None:
    """The cluster that the first formatted directory belongs to."""
    found = read_directories(directories).formatted.values()
    return next((meta.cluster_id for meta in found if meta.cluster_id is not None), None)


def check_agreement(
    found: ReadDirectories, *, cluster_id: str | None = None, node_id: int | None = None
) -> None:
    """Refuse directories of another cluster or node, and two that are copies of each other.

    Where nothing is expected, the first directory says what the others must agree with.
    """
    expected_by = {"cluster.id": "was expected", "node.id": "was expected"}
    seen: dict[Uuid, str] = {}
    for path, meta in found.formatted.items():
        file = os.path.join(path, meta_properties.NAME)
        if meta.cluster_id is not None:
            if cluster_id is None:
                cluster_id, expected_by["cluster.id"] = meta.cluster_id, f"is in {path}"
            elif meta.cluster_id != cluster_id:
                raise WrongDirectory(
                    f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read "
                    f"{meta.cluster_id} ({cluster_id} {expected_by['cluster.id']})"
                )
        if meta.node_id is not None:
            if node_id is None:
                node_id, expected_by["node.id"] = meta.node_id, f"is in {path}"
            elif meta.node_id != node_id:
                raise WrongDirectory(
                    f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in "
                    f"{file}. If you moved your data, make sure your configured node id matches. "
                    "If you intend to create a new node, you should remove all data in your data "
                    f"directories. ({node_id} {expected_by['node.id']})"
                )
        if meta.directory_id is not None:
            if is_reserved(meta.directory_id):
                raise WrongDirectory(
                    f"Invalid reserved directory ID {meta.directory_id} found in {path}: ids below "
                    f"100 name no directory. Take the line directory.id out of {file}; the node "
                    "draws a new one"
                )
            if meta.directory_id in seen:
                raise WrongDirectory(
                    f"Duplicate directory ID {meta.directory_id} found. It was the ID of "
                    f"{seen[meta.directory_id]}, but also of {path}: one is a copy of the other"
                )
            seen[meta.directory_id] = path


def check_directories(
    log_dirs: Sequence[str], metadata_log_dir: str, *, node_id: int, cluster_id: str | None = None
) -> ReadDirectories:
    """What a node asks before it starts: WrongDirectory unless every directory is formatted
    for it, all for the same cluster, and the metadata log is where it should be.

    As in Kafka, a disk or a meta.properties that cannot be read stops the node only if the
    metadata log is there: others are in `unreadable` and `broken`, to be treated as offline. So
    is version 0 taken, which brokers that came from ZooKeeper may have kept.
    """
    found = read_directories([*log_dirs, metadata_log_dir])
    unusable = {**found.unreadable, **found.broken}
    if not found.formatted:
        raise WrongDirectory(_nothing_formatted(found.unformatted, unusable))
    check_agreement(found, cluster_id=cluster_id, node_id=node_id)
    if metadata_log_dir in unusable:
        raise WrongDirectory(
            f"Encountered I/O error in metadata log directory {metadata_log_dir}. Cannot "
            f"continue. {unusable[metadata_log_dir]}"
        )
    if found.unformatted:
        raise WrongDirectory(_unformatted(found, metadata_log_dir))
    for path in found.formatted:
        stray = os.path.join(path, f"{METADATA_TOPIC}-0")
        if os.path.abspath(path) != os.path.abspath(metadata_log_dir) and os.path.isdir(stray):
            raise WrongDirectory(
                f"Found unexpected metadata location in data directory `{path}` (the configured "
                f"metadata directory is {metadata_log_dir}). Was metadata.log.dir, or the order "
                "of log.dirs, changed?"
            )
    for path, meta in found.formatted.items():
        for value, key in ((meta.node_id, "broker.id"), (meta.cluster_id, "cluster.id")):
            if value is None:  # only version 0 can be without
                raise WrongDirectory(
                    f"there is no {key} in {os.path.join(path, meta_properties.NAME)}: is the file "
                    "cut short? Kafka writes it whole; `kraftline format --ignore-formatted` makes "
                    "it anew once it is gone"
                )
    return found


def _nothing_formatted(unformatted: Sequence[str], unusable: Mapping[str, str]) -> str:
    reasons = [f"{path}: {reason}" for path, reason in unusable.items()]
    if unformatted:
        reasons.append(f"{', '.join(unformatted)}: format the directories first (kraftline format)")
    return f"No readable meta.properties files found in {'; '.join(reasons)}"


def _unformatted(found: ReadDirectories, metadata_log_dir: str) -> str:
    path = found.unformatted[0]
    kind = "metadata log directory" if path == metadata_log_dir else "log directory"
    joining = "" if path == metadata_log_dir else " --no-initial-controllers"
    other, meta = next(iter(found.formatted.items()))
    return (
        f"No `{meta_properties.NAME}` found in {kind} {path}, while {other} is formatted for node "
        f"{meta.node_id} of cluster {meta.cluster_id}. Is a disk not mounted? A new directory is "
        f"formatted with: kraftline format --ignore-formatted --cluster-id={meta.cluster_id} "
        f"--config server.properties{joining}"
    )

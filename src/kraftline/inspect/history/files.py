"""From paths that a person gives to the copies of one metadata log: segments and snapshots."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from kraftline.errors import KraftlineError, NotKafka
from kraftline.storage import meta_properties
from kraftline.storage.detect import PathKind, detect
from kraftline.storage.log_dir import read_log_directory
from kraftline.storage.meta_properties import read_meta_properties
from kraftline.storage.names import (
    METADATA_TOPIC,
    SnapshotId,
    SnapshotState,
    parse_snapshot,
)
from kraftline.storage.partition_dir import read_partition_directory


class Snapshot(msgspec.Struct, frozen=True):
    """A whole snapshot: the state below `id.end_offset`."""

    path: str
    id: SnapshotId


class Copy(msgspec.Struct, frozen=True):
    """One node's copy of the log. `cluster_id` is None where nothing says whose it is. `formatted`
    is the snapshot before all records that a dynamic quorum begins with: it has its voters."""

    path: str
    segments: tuple[str, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    cluster_id: str | None = None
    formatted: Snapshot | None = None


def find_copies(paths: Sequence[str]) -> list[Copy]:
    """What lies behind the paths; NotKafka where one has no metadata in it, or where they are of
    several clusters."""
    copies = [_copy(path, alone=len(paths) == 1) for path in paths]
    clusters = {copy.cluster_id: copy for copy in copies if copy.cluster_id is not None}
    if len(clusters) > 1:
        said = ", ".join(f"{copy.path} of {cluster}" for cluster, copy in clusters.items())
        raise NotKafka(f"these are of different clusters, which have no history together: {said}")
    return copies


def _copy(path: str, *, alone: bool) -> Copy:
    kind = detect(path)
    match kind:
        case PathKind.SEGMENT:
            return Copy(path, segments=(path,), cluster_id=cluster_around(os.path.dirname(path)))
        case PathKind.SNAPSHOT | PathKind.BOOTSTRAP:
            named = kind is PathKind.BOOTSTRAP or parse_snapshot(os.path.basename(path)) is not None
            if not alone and not named:
                raise NotKafka(
                    f"{path}: a snapshot whose name tells no offset has no place beside others; "
                    "give it by itself, or under Kafka's name for it"
                )
            inside = path if kind is PathKind.BOOTSTRAP else os.path.dirname(path)
            return Copy(path, snapshots=(_snapshot(path),), cluster_id=cluster_around(inside))
        case PathKind.PARTITION_DIRECTORY:
            return _partition(path, cluster_around(path))
        case PathKind.LOG_DIRECTORY:
            # Whose it is matters only beside others; reading that takes longer than all the rest.
            log = os.path.join(path, f"{METADATA_TOPIC}-0")
            if alone and os.path.isdir(log):
                copy = _partition(log)
                if _has_something(copy):
                    return copy
            return _log_directory(path)
    raise NotKafka(f"{path}: a {kind.value} holds no metadata; `kraftline info` explains it")


def cluster_around(partition: str) -> str | None:
    """The cluster that a partition's directory is of, if the log directory around it tells."""
    folder = os.path.dirname(os.path.realpath(partition))
    try:
        return read_meta_properties(os.path.join(folder, meta_properties.NAME)).cluster_id
    except KraftlineError:
        return None


def _snapshot(path: str) -> Snapshot:
    name = parse_snapshot(os.path.basename(path))
    # bootstrap.checkpoint comes before all records, as does one of another name.
    return Snapshot(path, SnapshotId(0, 0) if name is None else name.id)


def _partition(path: str, cluster_id: str | None = None) -> Copy:
    directory = read_partition_directory(path)
    if directory.name is not None and directory.name.topic != METADATA_TOPIC:
        raise NotKafka(
            f"{path}: the log of a topic, not of the cluster's metadata "
            f"(that is in {METADATA_TOPIC}-0)"
        )
    snapshots = tuple(
        Snapshot(each.path, each.id)
        for each in directory.snapshots
        if each.state is SnapshotState.WHOLE
    )
    return Copy(
        path,
        tuple(segment.path for segment in directory.segments),
        snapshots,
        cluster_id,
        next((each for each in snapshots if not each.id.end_offset), None),
    )


def _has_something(copy: Copy) -> bool:
    """Whether it goes beyond what formatting leaves: of a dynamic quorum, its voters."""
    return any(each.id.end_offset for each in copy.snapshots) or any(
        os.path.getsize(segment) for segment in copy.segments
    )


def _log_directory(path: str) -> Copy:
    directory = read_log_directory(path)
    cluster_id = None if directory.meta is None else directory.meta.cluster_id
    place = directory.metadata_log()
    copy = None if place is None else _partition(place.path, cluster_id)
    if copy is not None and _has_something(copy):
        return copy
    if directory.bootstrap is not None:
        # Formatted and never started: a cluster would begin with these records.
        return Copy(
            path,
            snapshots=(_snapshot(directory.bootstrap),),
            cluster_id=cluster_id,
            formatted=None if copy is None else copy.formatted,
        )
    if copy is not None and copy.snapshots:
        return copy
    raise NotKafka(
        f"{path}: there is no {METADATA_TOPIC}-0 in it; the metadata log is in the directory that "
        "metadata.log.dir names, or else in the first of log.dirs"
    )

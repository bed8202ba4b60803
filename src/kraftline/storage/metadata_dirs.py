"""Which directories hold the cluster's metadata, under whatever name they were copied to."""

from __future__ import annotations

import os

from kraftline.errors import NotKafka
from kraftline.schema.uuids import Uuid
from kraftline.storage.names import METADATA_TOPIC, SnapshotState, base_offset_of
from kraftline.storage.partition_dir import (
    PartitionDirectory,
    SnapshotFile,
    read_partition_directory,
)

METADATA_TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")


def holds_metadata(directory: PartitionDirectory) -> bool:
    """By its name; else by its topic id; else no other log has snapshots of a cluster, or a
    quorum."""
    if directory.name is not None and directory.name.topic == METADATA_TOPIC:
        return True
    if directory.topic_id is not None:
        return directory.topic_id == METADATA_TOPIC_ID
    return bool(directory.snapshots) or directory.quorum_state is not None


def is_metadata_segment(path: str) -> bool:
    """Whether a segment lies in such a directory; a renamed one is whatever it is."""
    if base_offset_of(path) is None:
        return False
    try:
        return holds_metadata(read_partition_directory(os.path.dirname(os.path.abspath(path))))
    except NotKafka:
        return False  # nothing around it can be read


def whole_snapshots(directory: PartitionDirectory) -> list[SnapshotFile]:
    found = [each for each in directory.snapshots if each.state is SnapshotState.WHOLE]
    return sorted(found, key=lambda each: each.id)

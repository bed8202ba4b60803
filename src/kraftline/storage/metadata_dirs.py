"""Which directories hold the cluster's metadata, under whatever name they were copied to."""

from __future__ import annotations

from kraftline.schema.uuids import Uuid
from kraftline.storage.names import METADATA_TOPIC, SnapshotState
from kraftline.storage.partition_dir import PartitionDirectory, SnapshotFile

METADATA_TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")


def holds_metadata(directory: PartitionDirectory) -> bool:
    """By its name; else by its topic id; else no other log has snapshots of a cluster, or a
    quorum."""
    if directory.name is not None and directory.name.topic == METADATA_TOPIC:
        return True
    if directory.topic_id is not None:
        return directory.topic_id == METADATA_TOPIC_ID
    return bool(directory.snapshots) or directory.quorum_state is not None


def whole_snapshots(directory: PartitionDirectory) -> list[SnapshotFile]:
    found = [each for each in directory.snapshots if each.state is SnapshotState.WHOLE]
    return sorted(found, key=lambda each: each.id)

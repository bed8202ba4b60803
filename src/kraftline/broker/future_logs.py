"""Replicas that were being moved to another log directory when a disk failed.

A `-future` directory is a copy on its way to take the place of the log. The metadata says where the
log is: where that is the copy's directory, the old one failed after the copy was complete and
before it got its name. So it gets it now, and what is left of the old one goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from kraftline.errors import KraftlineError
from kraftline.metadata.image.topics import TopicsImage
from kraftline.schema.uuids import Uuid
from kraftline.storage.names import (
    PartitionName,
    PartitionState,
    format_partition,
    parse_partition,
)
from kraftline.storage.partition_metadata import NAME, read_partition_metadata


def promote_abandoned(
    directories: Mapping[str, Uuid], topics: TopicsImage, broker: int
) -> list[str]:
    """Before logs are opened; what was done, in lines. `directories` are ids by paths."""
    done: list[str] = []
    for path, identity in directories.items():
        for future, topic_id, name in list(_futures(path)):
            known = topics.partition(topic_id, name.partition)
            if known is None or known.directory(broker) != identity:
                continue
            plain = format_partition(PartitionName(name.topic, name.partition))
            done += _set_old_aside(directories, plain, topic_id, name)
            os.rename(future, os.path.join(path, plain))
            done.append(f"{future}: the metadata has the partition here; it is {plain} now")
    return done


def _futures(path: str) -> Iterator[tuple[str, Uuid, PartitionName]]:
    for entry in os.scandir(path):
        name = parse_partition(entry.name)
        if name is not None and name.state is PartitionState.FUTURE:
            topic_id = _topic_id(entry.path)
            if topic_id is not None:
                yield entry.path, topic_id, name


def _set_old_aside(
    directories: Mapping[str, Uuid], plain: str, topic_id: Uuid, name: PartitionName
) -> Iterator[str]:
    """The same partition wherever else it is: on its way out."""
    for path in directories:
        old = os.path.join(path, plain)
        if os.path.isdir(old) and _topic_id(old) in (topic_id, None):
            away = PartitionName(name.topic, name.partition, PartitionState.DELETED)
            os.rename(old, os.path.join(path, format_partition(away)))
            yield f"{old}: the metadata has the partition elsewhere; it is deleted"


def _topic_id(directory: str) -> Uuid | None:
    try:
        return read_partition_metadata(os.path.join(directory, NAME)).topic_id
    except (KraftlineError, OSError):
        return None  # it is not known what it is: it is left alone

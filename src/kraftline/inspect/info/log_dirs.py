"""What a log directory is: whose, in what state, with which topics; without reading the logs."""

from __future__ import annotations

import os

import msgspec

from kraftline.errors import NotKafka
from kraftline.inspect.info.metadata import read_features
from kraftline.inspect.info.partitions import (
    PartitionInfo,
    partition_info,
    read_reason,
    sort_oddities,
)
from kraftline.storage import checkpoints
from kraftline.storage.files import vanished
from kraftline.storage.log_dir import LogDirectory, PartitionPlace, read_log_directory
from kraftline.storage.names import PartitionName
from kraftline.storage.partition_dir import read_partition_directory


class QuorumInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The node's view of the quorum, from quorum-state and the log; None where nobody is."""

    leader_id: int | None
    leader_epoch: int
    voted_id: int | None
    voters: tuple[int, ...] | None
    data_version: int


class TopicInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's partitions that are here, by number."""

    topic: str
    topic_id: str | None
    size: int
    partitions: tuple[PartitionInfo, ...]


class LogDirectoryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`clean_shutdown` False: the broker runs, or was killed. `others` are directories that are
    marked as deleted, future or stray."""

    path: str
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    meta_version: int | None = None
    clean_shutdown: bool = False
    broker_epoch: int | None = None
    features: dict[str, int] | None = None
    quorum: QuorumInfo | None = None
    metadata_log: PartitionInfo | None = None
    bootstrap: str | None = None
    size: int = 0
    topics: tuple[TopicInfo, ...] = ()
    others: tuple[PartitionInfo, ...] = ()
    checkpoints: dict[str, int] = {}
    odd: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


def log_directory_info(path: str) -> LogDirectoryInfo:
    """Describe a log directory; topics come largest first."""
    directory = read_log_directory(path)
    odd, unreadable = sort_oddities(directory.oddities)
    odd += [f"{name}: not a file that Kafka keeps here" for name in directory.unknown]
    odd = list(dict.fromkeys(odd))
    metadata = directory.metadata_log()
    partitions, others, metadata_info = [], [], None
    for place in directory.partitions:
        info = _partition(place, unreadable, brief=place is not metadata)
        if info is None:
            continue
        name = os.path.basename(place.path)
        unreadable += [f"{name}/{line}" for line in info.unreadable]
        odd += [f"{name}/{line}" for line in info.odd]
        if place is metadata:
            metadata_info = info
        elif info.state == "normal":
            partitions.append(info)
        else:
            others.append(info)
    odd += _missing(directory)
    features, quorum = _metadata(directory, metadata)
    meta, marker = directory.meta, directory.clean_shutdown
    return LogDirectoryInfo(
        path=path,
        cluster_id=None if meta is None else meta.cluster_id,
        node_id=None if meta is None else meta.node_id,
        directory_id=None if meta is None or meta.directory_id is None else str(meta.directory_id),
        meta_version=None if meta is None else meta.version,
        clean_shutdown=marker is not None,
        broker_epoch=None if marker is None else marker.broker_epoch,
        features=features,
        quorum=quorum,
        metadata_log=metadata_info,
        bootstrap=directory.bootstrap,
        size=sum(p.size for p in (*partitions, *others))
        + (metadata_info.size if metadata_info else 0),
        topics=_topics(partitions),
        others=tuple(others),
        checkpoints={
            checkpoints.RECOVERY_POINTS: len(directory.recovery_points),
            checkpoints.HIGH_WATERMARKS: len(directory.high_watermarks),
            checkpoints.LOG_START_OFFSETS: len(directory.log_start_offsets),
            checkpoints.CLEANER_OFFSETS: len(directory.cleaner_offsets),
        },
        odd=tuple(odd),
        unreadable=tuple(unreadable),
    )


def _partition(
    place: PartitionPlace, unreadable: list[str], *, brief: bool
) -> PartitionInfo | None:
    try:
        return partition_info(place.path, brief=brief)
    except NotKafka as error:
        if not vanished(error):
            unreadable.append(f"{os.path.basename(place.path)}: {read_reason(error, place.path)}")
    return None


def _topics(partitions: list[PartitionInfo]) -> tuple[TopicInfo, ...]:
    by_name: dict[str, list[PartitionInfo]] = {}
    for info in partitions:
        by_name.setdefault(info.topic or "", []).append(info)
    topics = [
        TopicInfo(
            topic=name,
            topic_id=next((i.topic_id for i in found if i.topic_id is not None), None),
            size=sum(i.size for i in found),
            partitions=tuple(sorted(found, key=lambda i: i.partition or 0)),
        )
        for name, found in by_name.items()
    ]
    return tuple(sorted(topics, key=lambda topic: (-topic.size, topic.topic)))


def _metadata(
    directory: LogDirectory, place: PartitionPlace | None
) -> tuple[dict[str, int] | None, QuorumInfo | None]:
    if place is None:
        return None, None
    try:
        log = read_partition_directory(place.path)
    except NotKafka:
        return None, None
    found = read_features(log, directory.bootstrap)
    features = None if found is None else {k: v for k, v in sorted(found.levels.items()) if v}
    if found is not None and found.kraft_version is not None and features is not None:
        features["kraft.version"] = found.kraft_version
    state = log.quorum_state
    if state is None:
        return features, None
    voters = state.current_voters or None
    if found is not None and found.voters is not None:
        voters = found.voters
    return features, QuorumInfo(
        leader_id=_id(state.leader_id),
        leader_epoch=state.leader_epoch,
        voted_id=_id(state.voted_id),
        voters=voters,
        data_version=state.data_version,
    )


def _id(number: int) -> int | None:
    return None if number < 0 else number


def _missing(directory: LogDirectory) -> list[str]:
    """Partitions that a checkpoint names and that are not here, readable or not."""
    here = {place.name for place in directory.partitions}
    said = []
    for name, entries in (
        (checkpoints.RECOVERY_POINTS, directory.recovery_points),
        (checkpoints.HIGH_WATERMARKS, directory.high_watermarks),
    ):
        gone = [e for e in entries if PartitionName(e.topic, e.partition) not in here]
        if gone:
            which = ", ".join(f"{e.topic}-{e.partition}" for e in gone[:5])
            more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
            said.append(f"{name} names {which}{more}, which is not here")
    return said

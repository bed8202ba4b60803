"""A partition's directory: its segments in order, snapshots, producer state and small files."""

from __future__ import annotations

import os
from typing import NamedTuple

from kraftline.errors import BadData, NotKafka
from kraftline.inspect.verify.findings import Report
from kraftline.inspect.verify.headers import LogState
from kraftline.inspect.verify.replay import audit_snapshots
from kraftline.inspect.verify.segments import Surroundings, verify_segment
from kraftline.inspect.verify.snapshots import verify_snapshot
from kraftline.schema.uuids import Uuid
from kraftline.storage import checkpoints, clean_shutdown, partition_metadata, quorum_state
from kraftline.storage.files import vanished
from kraftline.storage.metadata_dirs import (
    METADATA_TOPIC_ID,
    holds_metadata,
    whole_snapshots,
)
from kraftline.storage.names import (
    METADATA_TOPIC,
    FileKind,
    PartitionName,
    PartitionState,
    SnapshotState,
    Working,
    parse_segment_file,
    parse_snapshot,
)
from kraftline.storage.partition_dir import (
    Oddity,
    PartitionDirectory,
    Segment,
    read_partition_directory,
)
from kraftline.storage.producer_snapshot import read_producer_snapshot

_CODES = {
    checkpoints.LEADER_EPOCHS: "leader-epochs",
    partition_metadata.NAME: "partition-metadata",
    quorum_state.NAME: "quorum-state",
}


class Extent(NamedTuple):
    """Where a log begins and ends: base offset of its first segment, offset after its last."""

    start: int
    end: int


class TopicIds:
    """The ids of the topics in a log directory: one id a topic, and one topic an id."""

    def __init__(self) -> None:
        self._ids: dict[str, Uuid] = {}
        self._topics: dict[Uuid, str] = {}

    def check(self, name: PartitionName, topic_id: Uuid, file: str, report: Report) -> None:
        if name.state is not PartitionState.NORMAL:
            return  # of a topic of the same name that was there before, perhaps
        known = self._ids.setdefault(name.topic, topic_id)
        owner = self._topics.setdefault(topic_id, name.topic)
        problem = None
        if known != topic_id:
            problem = f"topic id {topic_id}, but other partitions of {name.topic} have {known}"
        elif owner != name.topic:
            problem = f"topic id {topic_id}, which partitions of {owner} have"
        if problem is not None:
            meaning = "Kafka goes by this id: it sets the partition aside, or does not serve it."
            report.add("partition-metadata", file, problem, meaning=meaning)


def verify_partition(
    path: str,
    report: Report,
    *,
    clean: bool | None = None,
    log_start: int | None = None,
    topic_ids: TopicIds | None = None,
) -> Extent | None:
    """Check a directory. `clean` says whether the broker stopped cleanly, `log_start` where the log
    begins by the checkpoint beside it (both looked up if None); `topic_ids` has those of partitions
    beside it.

    Returns where the log begins and ends, None where that cannot be said.
    """
    try:
        directory = read_partition_directory(path)
    except NotKafka as error:
        if not vanished(error):
            report.add("unreadable", path, str(error).removeprefix(f"{path}: "))
        return None
    if clean is None:
        clean = stopped_cleanly(os.path.dirname(os.path.abspath(path)))
    name = directory.name
    topic = None if name is None else name.topic
    if holds_metadata(directory):
        topic = METADATA_TOPIC
    clean = clean and closed_at_stop(name) and topic != METADATA_TOPIC
    if log_start is None:
        log_start = _log_start(path, name)
    for oddity in directory.oddities:
        _oddity(oddity, report)
    for snapshot in directory.snapshots:
        if snapshot.state is SnapshotState.WHOLE:
            verify_snapshot(snapshot.path, report)
        else:
            report.note("snapshot-footer", snapshot.path, _UNFINISHED[snapshot.state])
    known_from = log_start if clean else None
    log = LogState(directory.leader_epochs, known_from=known_from, may_lag=not clean)
    extent = _segments(directory, Surroundings(topic, clean), log, report)
    if report.first:
        return extent
    _producers(directory, extent, clean, report)
    _epochs(directory, extent, clean, report)
    _working_files(directory, topic, report)
    if directory.topic_id is not None:
        report.read_file(0)
        if topic_ids is not None and name is not None:
            file = os.path.join(path, partition_metadata.NAME)
            topic_ids.check(name, directory.topic_id, file, report)
        if topic == METADATA_TOPIC and directory.topic_id != METADATA_TOPIC_ID:
            report.add(
                "partition-metadata",
                os.path.join(path, partition_metadata.NAME),
                f"topic id {directory.topic_id}, where the metadata log has {METADATA_TOPIC_ID}",
            )
    if topic == METADATA_TOPIC:
        _metadata_log(directory, extent, log, report)
        audit_snapshots(directory, report)
    return extent


_UNFINISHED = {
    SnapshotState.PARTIAL: "being written, or left by a crash; Kafka removes it when it starts",
    SnapshotState.DELETED: "on its way out; not looked at",
}


def closed_at_stop(name: PartitionName | None) -> bool:
    """Whether a clean stop closes the log: the metadata log is recovered at every start, and
    what is marked as deleted or stray is no longer the broker's to close."""
    if name is None:
        return True
    going = (PartitionState.DELETED, PartitionState.STRAY)
    return name.topic != METADATA_TOPIC and name.state not in going


def stopped_cleanly(log_directory: str) -> bool:
    return os.path.exists(os.path.join(log_directory, clean_shutdown.NAME))


def _log_start(path: str, name: PartitionName | None) -> int | None:
    """By the checkpoint of the log directory, which has those that begin within a segment."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        entries = checkpoints.read_offset_checkpoint(
            os.path.join(folder, checkpoints.LOG_START_OFFSETS)
        )
    except (BadData, NotKafka):
        return None
    if name is None:
        return None
    found = [e.offset for e in entries if (e.topic, e.partition) == (name.topic, name.partition)]
    return max(found, default=0)


def _segments(
    directory: PartitionDirectory, around: Surroundings, log: LogState, report: Report
) -> Extent | None:
    segments = directory.segments
    end: int | None = None
    for n, segment in enumerate(segments):
        following = segments[n + 1] if n + 1 < len(segments) else None
        walked = verify_segment(
            segment,
            around,
            log,
            report,
            newest=following is None,
            following=following,
        )
        if walked is not None:
            end = segment.base_offset if walked.next_offset is None else walked.next_offset
        elif following is None:
            end = None
        if segment.size and not report.first:
            _missing_index(segment, report)
    if not segments or end is None:
        return None
    return Extent(segments[0].base_offset, max(end, segments[-1].base_offset))


def _missing_index(segment: Segment, report: Report) -> None:
    kinds = {companion.kind for companion in segment.companions}
    if FileKind.OFFSET_INDEX not in kinds:
        report.note("index-size", segment.path, "has no index; Kafka builds one when it starts")
    elif FileKind.TIME_INDEX not in kinds:
        report.note(
            "index-size",
            segment.path,
            "has no time index; Kafka makes an empty one when it starts, and goes by the time of "
            "the file, unless the .index is missing too: then it builds both",
        )


def _producers(
    directory: PartitionDirectory, extent: Extent | None, clean: bool, report: Report
) -> None:
    for file in directory.producer_snapshots:
        verify_producer_snapshot(file.path, file.end_offset, report)
        if extent is not None and file.end_offset > extent.end:
            report.add(
                "producer-snapshot",
                file.path,
                f"covers offsets up to {file.end_offset}, but the log ends at {extent.end}",
                offset=file.end_offset,
                meaning="Kafka removes such a file when it starts.",
                note=not clean,
            )


def verify_producer_snapshot(path: str, end_offset: int | None, report: Report) -> None:
    try:
        entries = read_producer_snapshot(path)
    except (BadData, NotKafka) as error:
        refuse(error, "producer-snapshot", path, report)
        return
    report.read_file(os.path.getsize(path) if os.path.exists(path) else 0)
    seen: set[int] = set()
    for n, entry in enumerate(entries):
        problem = None
        newest = max(entry.last_offset, entry.current_txn_first_offset)
        if entry.producer_id in seen:
            problem = "is there twice"
        elif end_offset is not None and newest >= end_offset:
            problem = f"has offset {newest}, but the file covers offsets below {end_offset}"
        seen.add(entry.producer_id)
        if problem is not None:
            report.add(
                "producer-snapshot",
                path,
                f"entry {n}: producer {entry.producer_id} {problem}",
                position=10 + 46 * n,
            )


def _epochs(
    directory: PartitionDirectory, extent: Extent | None, clean: bool, report: Report
) -> None:
    file = os.path.join(directory.path, checkpoints.LEADER_EPOCHS)
    if directory.leader_epochs:
        report.read_file(0)
    verify_epoch_order(directory.leader_epochs, file, report)
    if extent is None:
        return
    late = [entry for entry in directory.leader_epochs if entry.start_offset > extent.end]
    for entry in late:
        report.add(
            "leader-epochs",
            file,
            f"epoch {entry.epoch} begins at {entry.start_offset}, but the log ends at {extent.end}",
            offset=entry.start_offset,
            meaning="Kafka drops such entries when it starts.",
            note=not clean,
        )


def verify_epoch_order(
    epochs: tuple[checkpoints.EpochStart, ...], file: str, report: Report
) -> None:
    previous = None
    for entry in epochs:
        if entry.epoch < 0 or entry.start_offset < 0:
            report.add("leader-epochs", file, f"epoch {entry.epoch}: a negative number")
        elif previous is not None and not (
            entry.epoch > previous.epoch and entry.start_offset >= previous.start_offset
        ):
            report.add(
                "leader-epochs",
                file,
                f"epoch {entry.epoch} from {entry.start_offset} follows epoch {previous.epoch} "
                f"from {previous.start_offset}: both must rise",
                offset=entry.start_offset,
            )
        previous = entry


def _working_files(directory: PartitionDirectory, topic: str | None, report: Report) -> None:
    leaving = 0
    for file in directory.working_files:
        if file.name.working is Working.SWAP and file.name.kind is FileKind.LOG:
            segment = Segment(file.name.offset, file.path, file.size)
            around = Surroundings(topic)
            verify_segment(segment, around, LogState(), report, newest=False)
        elif file.name.working is not Working.SWAP:
            leaving += 1
    if leaving:
        report.note(
            "unreadable",
            directory.path,
            f"{leaving} files on their way out (.deleted, .cleaned, .tmp) were not looked at",
        )


def _metadata_log(
    directory: PartitionDirectory, extent: Extent | None, log: LogState, report: Report
) -> None:
    whole = [snapshot.id.end_offset for snapshot in whole_snapshots(directory)]
    if extent is not None and extent.start > 0 and max(whole, default=-1) < extent.start:
        report.add(
            "snapshot-missing",
            directory.path,
            f"the log begins at offset {extent.start}, and no snapshot reaches up to there",
            offset=extent.start,
        )
    state = directory.quorum_state
    if state is None:
        return
    report.read_file(0)
    file = os.path.join(directory.path, quorum_state.NAME)
    if state.leader_epoch < 0:
        report.add(
            "quorum-state",
            file,
            f"leader epoch {state.leader_epoch}: epochs begin at 0",
            meaning="Kafka takes the epoch of the log, and forgets whom this node voted for.",
        )
    for what, node in (("leader", state.leader_id), ("vote for", state.voted_id)):
        if node < -1:
            report.add("quorum-state", file, f"{what} {node}: no node has such an id")
    if 0 <= state.leader_epoch < log.epoch:
        report.note(
            "quorum-state",
            file,
            f"leader epoch {state.leader_epoch}, but the log has batches of epoch {log.epoch}: "
            "an older copy of the file?",
        )


def _oddity(oddity: Oddity, report: Report) -> None:
    name = os.path.basename(oddity.path)
    if name in _CODES:
        report.add(_CODES[name], oddity.path, oddity.reason)
    elif oddity.reason.startswith("an index without") or oddity.reason.startswith("a second file"):
        report.note("index-size", oddity.path, f"{oddity.reason}; Kafka removes it when it starts")
    elif parse_segment_file(name) or parse_snapshot(name) or "cannot be read" in oddity.reason:
        report.add("unreadable", oddity.path, oddity.reason)
    else:
        report.note("unreadable", oddity.path, oddity.reason)


def refuse(error: BadData | NotKafka, code: str, path: str, report: Report) -> None:
    """Tell why a small file cannot be read, unless it just vanished."""
    if isinstance(error, NotKafka):
        if not vanished(error):
            report.add("unreadable", path, str(error).removeprefix(f"{path}: "))
        return
    report.add(code, path, error.reason, position=error.position)

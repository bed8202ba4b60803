"""The metadata audit of one directory: every snapshot against the replay of the log up to its end,
records and quorum; and whether each record of the log fits what came before it.

The log is read once. The replay goes on from its own state after each snapshot, so
that a fault is told of in every snapshot that has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.errors import KraftlineError, NotKafka
from kraftline.inspect.history.trouble import Trouble, name_of, of_fault
from kraftline.inspect.moments import show_time
from kraftline.inspect.verify.findings import Report
from kraftline.inspect.verify.quorum import quorum_difference, quorum_of
from kraftline.inspect.verify.replay_causes import UNKNOWN, Causes
from kraftline.inspect.verify.replay_difference import Difference, differences, in_words
from kraftline.inspect.verify.replay_reading import read_batches, snapshot_image
from kraftline.metadata.image import EMPTY, MetadataImage
from kraftline.metadata.loader import MetadataBatch, MetadataFault, Replay, Unreadable, part_of
from kraftline.raft.control_state import ControlState
from kraftline.storage.metadata_dirs import whole_snapshots
from kraftline.storage.partition_dir import PartitionDirectory, SnapshotFile
from kraftline.storage.snapshot_file import SnapshotReader

CODE = "snapshot-replay"
QUORUM = "snapshot-quorum"
_NAMED = 10


def audit_snapshots(directory: PartitionDirectory, report: Report) -> None:
    """Compare each whole snapshot with the log, where the log reaches back far enough."""
    snapshots = whole_snapshots(directory)
    segments = [segment.path for segment in directory.segments]
    try:
        _Audit(segments, snapshots, directory.path, report).run()
    except NotKafka:
        # A live node dropped a segment meanwhile; there is nothing wrong with that.
        report.note(CODE, directory.path, "the log changed while it was replayed: try again")


def audit_elsewhere(
    segments: Sequence[str], snapshots: Sequence[SnapshotFile], path: str, report: Report
) -> None:
    """Compare snapshots with another node's log, which reaches back further than their own. Only
    what is wrong with them is told: the log was looked at where it lies."""
    held, waiting = report.held()
    try:
        _Audit(segments, snapshots, path, held).run()
    except NotKafka:
        return  # dropped meanwhile
    report.pass_on(*(each for each in waiting if not each.is_note))


class _Audit:
    def __init__(
        self,
        segments: Sequence[str],
        snapshots: Sequence[SnapshotFile],
        path: str,
        report: Report,
    ) -> None:
        self.segments = segments
        # What formatting left comes before the log: a controller writes it there, if it counts.
        self.formatted = [each for each in snapshots if not each.id.end_offset]
        self.snapshots = [each for each in snapshots if each.id.end_offset]
        self.path = path
        self.report = report
        # None while it is not known what came before.
        self.replay: Replay | None = None
        self.quorum = ControlState()
        # Of the last batch, and of the last one that has more than control records.
        self.times: tuple[int, int] | None = None
        self.refused: list[Trouble] = []
        self.unchecked: list[SnapshotFile] = []

    def run(self) -> None:
        at, reached = 0, None
        for batch in read_batches(self.segments, self.report.read_again):
            if batch.base_offset != reached:
                self._lose()
                if batch.base_offset == 0:
                    self._begin_at_the_start()
            position, reached = batch.base_offset, batch.last_offset + 1
            while at < len(self.snapshots):
                end = self.snapshots[at].id.end_offset
                if end > reached:
                    break
                if end < position:
                    self.unchecked.append(self.snapshots[at])
                else:
                    self._take(part_of(batch, position, end - 1))
                    position = end
                    self._meet(self.snapshots[at])
                at += 1
            self._take(part_of(batch, position, batch.last_offset))
            if at == len(self.snapshots) and self.replay is None:
                break  # nothing tells what the rest follows from
        self._tell_the_rest(self.snapshots[at:], reached)

    def _begin_at_the_start(self) -> None:
        self.replay = self._begin(EMPTY)
        for snapshot in self.formatted:
            try:
                with SnapshotReader(snapshot.path) as reader:
                    self.quorum.add_snapshot(reader)
            except KraftlineError:
                continue  # not whole, which is a finding of its own, or gone

    def _begin(self, image: MetadataImage) -> Replay:
        return Replay(image, faults=self, lazily=True)

    def _lose(self) -> None:
        """What comes next follows from something that cannot be read."""
        self.replay = None
        self.times = None
        self.quorum = ControlState()

    def _take(self, batch: MetadataBatch) -> None:
        if self.replay is not None:
            self.replay.take(batch)
            time = batch.append_timestamp
            plain = time if batch.records or self.times is None else self.times[1]
            self.times = (time, plain)
            self.quorum.add(batch.base_offset, [control.message for control in batch.controls])

    def handle(self, fault: MetadataFault) -> None:
        """A record that does not fit has no effect; of one that cannot be read, nobody knows."""
        if isinstance(fault.record, Unreadable):
            self._lose()
        else:
            self.refused.append(of_fault(fault))

    def _meet(self, snapshot: SnapshotFile) -> None:
        """The replay has come to a snapshot's end: compare, or begin there."""
        try:
            theirs = snapshot_image(snapshot.path)
            self.report.read_again(snapshot.size)
            self._meet_quorum(snapshot)
        except KraftlineError:
            return  # not whole, which is a finding of its own, or gone
        if self.replay is None:
            self.unchecked.append(snapshot)
            self.replay = self._begin(theirs)
            return
        self.replay.flush()
        ours = self.replay.image
        found = differences(ours, theirs)
        if found:
            self._tell(snapshot, found, ours, theirs)

    def _meet_quorum(self, snapshot: SnapshotFile) -> None:
        with SnapshotReader(snapshot.path, any_epoch=True) as reader:
            if self.replay is None:
                self.quorum.add_snapshot(reader)
                return
            found = quorum_difference(quorum_of(self.quorum), quorum_of(reader))
        if found:
            self.report.add(
                QUORUM,
                snapshot.path,
                f"its quorum is not that of the log up to offset {snapshot.id.end_offset - 1}: "
                f"{found}",
                offset=snapshot.id.end_offset,
            )

    def _tell(
        self,
        snapshot: SnapshotFile,
        found: Sequence[Difference],
        ours: MetadataImage,
        theirs: MetadataImage,
    ) -> None:
        by_cause: dict[str, list[Difference]] = {}
        misplaced = self._misplaced(snapshot)
        if misplaced is not None:
            by_cause[misplaced] = list(found)
        else:
            causes = Causes(self.segments, snapshot.id.end_offset, found)
            for difference in found:
                by_cause.setdefault(causes.of(difference), []).append(difference)
        for cause, group in sorted(by_cause.items(), key=lambda item: item[0] == UNKNOWN):
            self.report.add(
                CODE,
                snapshot.path,
                f"it is not what the log up to offset {snapshot.id.end_offset - 1} comes to: "
                f"{listed(group, ours, theirs)}; {cause}",
                offset=snapshot.id.end_offset,
            )

    def _misplaced(self, snapshot: SnapshotFile) -> str | None:
        """Where its header has another time than the log there, it was taken elsewhere. Kafka puts
        the time of the last batch there, or of the last that its own listeners were given."""
        if self.times is None:
            return None
        with SnapshotReader(snapshot.path, any_epoch=True) as reader:
            time = reader.header.last_contained_log_timestamp
        if min(self.times) <= time <= max(self.times):
            return None
        return (
            f"its header says that its last record is of {show_time(time)}, and the log has "
            f"{show_time(self.times[0])} there: likely a snapshot of another moment, or of another "
            "cluster, under this name"
        )

    def _tell_the_rest(self, behind: Sequence[SnapshotFile], reached: int | None) -> None:
        """Notes, not findings: the log is trimmed as Kafka trims it, or not here at all."""
        if self.unchecked:
            names = ", ".join(str(each.id.end_offset) for each in self.unchecked[:_NAMED])
            self.report.note(
                CODE,
                self.path,
                f"the log does not reach back far enough to replay the snapshots that end at "
                f"{names}: they are taken as they are",
            )
        if behind:
            end = "there is no log" if reached is None else f"the log ends at offset {reached}"
            names = ", ".join(str(each.id.end_offset) for each in behind[:_NAMED])
            self.report.note(
                CODE, self.path, f"{end}: nothing to compare the snapshots that end at {names} with"
            )
        if self.refused:
            first = self.refused[0]
            self.report.note(
                CODE,
                self.path,
                f"records that do not fit what came before them ({len(self.refused):,}): brokers "
                f"pass over such, a controller stops there; the first: {first}",
            )
        opened = None if self.replay is None else self.replay.transaction
        if opened is not None:
            self.report.note(
                CODE,
                self.path,
                f"the log ends inside {name_of(opened)}: none of its records counts, and the next "
                "controller aborts it unless its end is yet to be written",
            )


def listed(
    group: Sequence[Difference],
    one: MetadataImage,
    other: MetadataImage,
    *,
    second: str = "the snapshot",
) -> str:
    """Up to ten differences in words, by what kind they are."""
    kinds: dict[str, list[Difference]] = {}
    for difference in group:
        if difference.one is None:
            kind = f"only in {second}"
        elif difference.other is None:
            kind = f"missing from {second}"
        else:
            kind = "different"
        kinds.setdefault(kind, []).append(difference)
    said = []
    left = _NAMED
    for kind, members in kinds.items():
        shown = [in_words(each, one, other) for each in members[:left]]
        left -= len(shown)
        more = len(members) - len(shown)
        tail = [f"{more} more"] if more else []
        count = f"{len(members)} records" if len(members) > 1 else "1 record"
        said.append(f"{count} {kind}: {', '.join([*shown, *tail])}")
    return "; ".join(said)

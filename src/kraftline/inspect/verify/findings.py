"""What `verify` finds: one finding per thing that is wrong, with what it means for a person.

A note is something worth knowing that healthy files show too; it never counts as a problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from kraftline.records.compression import Scratch

_START_BYTES: Final = 48

_CUT = (
    "A start after a crash cuts the log here and drops everything behind it; after a clean stop "
    "Kafka does not look, and readers stop here with CorruptRecordException."
)
# In the metadata log, a gap.
LOST: Final = (
    "The metadata log is never compacted: records of it are lost. Kafka does not notice, and nodes "
    "that follow this copy across the gap miss them."
)
_REFUSED = "A KRaft node will not start with this snapshot, if it is the newest."
# Of a snapshot, instead of the meanings below.
IN_SNAPSHOT: Final[dict[str, str]] = dict.fromkeys(
    (
        *("batch-framing", "batch-magic", "batch-crc", "batch-codec", "batch-decompress"),
        *("batch-count", "batch-offset", "record-framing", "record-order", "tail-zeros"),
    ),
    _REFUSED,
)
_STOPS = "Whoever reads this record stops here: a controller or broker will not start past it."
# Kafka looks only for that one: in the place of a missing .timeindex it puts an empty one.
REBUILD: Final = (
    "Delete the .index of this segment while the broker is down: Kafka then builds all its "
    "indexes anew from the log."
)
_INDEX = (
    "Kafka does not check indexes after a clean stop, and reads may start at a wrong place. "
    + REBUILD
)
_SMALL = "Kafka stops reading this log directory with an error when it meets this file."

# What each code means, where the place of the finding does not say it better.
MEANINGS: Final[dict[str, str]] = {
    "unreadable": "Nothing in it could be checked.",
    "batch-framing": _CUT,
    "batch-magic": _CUT,
    "batch-crc": _CUT,
    "batch-too-large": "It is above the limit of this tool, and was not looked into.",
    "batch-codec": "Consumers fail on this batch; Kafka stores it without looking inside.",
    "batch-decompress": "Consumers fail on this batch; Kafka stores it without looking inside.",
    "batch-count": "Readers that trust the count miss records or fail on this batch.",
    "batch-offset": (
        "Reads by offset may return wrong records or none; a start after a crash cuts the log here."
    ),
    "batch-epoch": "Followers compare epochs to find where logs part: they may cut too much.",
    "batch-attributes": "Kafka writes no such attributes: the batch is damaged or from elsewhere.",
    "batch-max-timestamp": "Lookups by time and retention by time go by the wrong time here.",
    "batch-timestamp-delta": "A KRaft node refuses to start: it wants one time per batch.",
    "segment-overflow": "Offsets do not fit into the indexes; Kafka splits the segment at start.",
    "tail-partial": _CUT,
    "tail-zeros": _CUT,
    "record-framing": "Readers fail on this batch, and cannot tell its records apart.",
    "record-order": "Consumers may get records twice or miss them.",
    "control-record": "Whoever reads the marker stops here: consumers, brokers or a KRaft node.",
    "record-type": _STOPS,
    "record-leftover": (
        "A KRaft node that reads this record stops: the bytes behind it mean that it is not what "
        "it says."
    ),
    "record-value": _STOPS,
    "record-key": _STOPS,
    "index-size": _INDEX,
    "index-order": _INDEX,
    "index-tail": _INDEX,
    "index-position": _INDEX,
    "index-offset": _INDEX,
    "index-past-end": _INDEX,
    "timeindex-offset": _INDEX,
    "timeindex-timestamp": _INDEX,
    "txnindex-entry": (
        "Consumers with read_committed may see records of aborted transactions, or miss others. "
        f"{REBUILD}"
    ),
    "producer-snapshot": (
        "Kafka drops such a file and reads the log again from an older one: a slower start."
    ),
    "leader-epochs": "Followers and consumers may be told wrong places where epochs begin.",
    "partition-metadata": "Kafka puts the whole log directory offline when it reads this file.",
    "quorum-state": "The node will not start its Raft client with this file.",
    "meta-properties": "Kafka will not start on this log directory.",
    "clean-shutdown": "Kafka takes the last stop for an unclean one and recovers every log.",
    "checkpoint-file": _SMALL,
    "recovery-point": "Records that were flushed to disk are gone from this log.",
    "high-watermark": "Records that were committed are gone from this replica.",
    "log-start-offset": "Everything in this log counts as deleted.",
    "snapshot-header": "A KRaft node refuses this snapshot.",
    "snapshot-footer": "The snapshot is cut: a KRaft node refuses it.",
    "snapshot-offset": "A KRaft node refuses this snapshot.",
    "snapshot-epoch": "Nodes that fetch it may take it for another snapshot.",
    "snapshot-missing": "A KRaft node will not start: records before its log are nowhere.",
    "snapshot-replay": (
        "A node that starts from this snapshot has another state than one that replays the log; "
        "which of the two a broker or controller has depends on when it was last started."
    ),
    "snapshot-quorum": (
        "A node that starts from this snapshot counts other nodes as voters than one that reads "
        "the log: they may elect different leaders, or none."
    ),
    "snapshot-divergence": "Nodes that start from these snapshots have different states.",
    "log-divergence": "These nodes have different histories, and may have different states.",
    "directory-name": "Kafka refuses to start with such a directory among its logs.",
}

# A reader that meets one of these cannot go on to the next record.
UNREADABLE: Final = frozenset(
    {
        "unreadable",
        "batch-framing",
        "batch-magic",
        "batch-crc",
        "batch-too-large",
        "batch-codec",
        "batch-decompress",
        "batch-count",
        "batch-timestamp-delta",
        "tail-partial",
        "tail-zeros",
        "record-framing",
        "record-type",
        "record-leftover",
        "record-value",
        "record-key",
        "control-record",
        "snapshot-header",
        "snapshot-footer",
    }
)


def _meaning(code: str, file: str) -> str:
    if file.endswith(".checkpoint") and code in IN_SNAPSHOT:
        return IN_SNAPSHOT[code]
    return MEANINGS[code]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, or with `is_note` only worth knowing.

    `start` holds the first bytes of what could not be read.
    """

    code: str
    file: str
    problem: str
    meaning: str = ""
    position: int | None = None
    offset: int | None = None
    record: int | None = None
    start: bytes = b""
    is_note: bool = False


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What was walked and found; `not_shown` findings and notes were counted only."""

    files: int
    batches: int
    records: int
    bytes: int
    findings: int
    notes: int
    not_shown: int
    seconds: float


class Enough(Exception):
    """Raised through the walk once the first unreadable record was found."""


class Report:
    """Takes findings as they come, passes them on, and keeps count."""

    def __init__(
        self,
        emit: Callable[[Finding], None],
        *,
        progress: Callable[[int], None] | None = None,
        first: bool = False,
        most: int | None = None,
    ) -> None:
        self._emit = emit
        self._most = most
        self._seen: Counter[tuple[str, str]] = Counter()
        self._progress = progress
        self.first = first
        # One for all files: warm memory is quick.
        self.scratch = Scratch(0)
        self.files = self.batches = self.records = self.bytes = 0
        self.findings = self.notes = self.not_shown = 0

    def add(
        self,
        code: str,
        file: str,
        problem: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        record: int | None = None,
        data: bytes | memoryview = b"",
        meaning: str | None = None,
        note: bool = False,
    ) -> None:
        if self.first and (note or code not in UNREADABLE):
            return
        self.pass_on(
            Finding(
                code=code,
                file=file,
                problem=problem,
                meaning=("" if note else _meaning(code, file)) if meaning is None else meaning,
                position=position,
                offset=offset,
                record=record,
                start=bytes(data[:_START_BYTES]),
                is_note=note,
            ),
        )
        if self.first:
            raise Enough

    def note(self, code: str, file: str, problem: str, *, position: int | None = None) -> None:
        self.add(code, file, problem, position=position, note=True)

    def held(self) -> tuple[Report, list[Finding]]:
        """A report whose findings wait in a list, until :meth:`pass_on`; counts go here."""
        waiting: list[Finding] = []
        return _Held(self, waiting.append), waiting

    def pass_on(self, *findings: Finding) -> None:
        for finding in findings:
            if finding.is_note:
                self.notes += 1
            else:
                self.findings += 1
            kind = finding.file, finding.code
            self._seen[kind] += 1
            if self._most is None or self._seen[kind] <= self._most:
                self._emit(finding)
            else:
                self.not_shown += 1

    def has_told(self, file: str, code: str) -> bool:
        """Whether there was such a finding or note of a file."""
        return (file, code) in self._seen

    def read_file(self, count: int) -> None:
        """One more file was read, of so many bytes."""
        self.files += 1
        self.walked(count)

    def walked(self, count: int) -> None:
        """So many bytes more were read."""
        self.bytes += count
        self.read_again(count)

    def read_again(self, count: int) -> None:
        """So many bytes more were done, though not for the first time: they do not count."""
        if self._progress is not None:
            self._progress(count)

    def summary(self, seconds: float) -> Summary:
        return Summary(
            files=self.files,
            batches=self.batches,
            records=self.records,
            bytes=self.bytes,
            findings=self.findings,
            notes=self.notes,
            not_shown=self.not_shown,
            seconds=seconds,
        )


class _Held(Report):
    """Counts what it reads where it came from; its findings go elsewhere."""

    def __init__(self, owner: Report, emit: Callable[[Finding], None]) -> None:
        super().__init__(emit)
        self._owner = owner

    def read_file(self, count: int) -> None:
        self._owner.read_file(count)

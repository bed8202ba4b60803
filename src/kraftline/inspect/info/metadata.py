"""The newest feature levels and voters of a metadata log, from its last snapshot onwards.

Only records of these two kinds are decoded; the rest is passed over by its first two bytes.
"""

from __future__ import annotations

import msgspec

from kraftline.errors import BadData, KraftlineError
from kraftline.records.compression import Scratch
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import Places, Run, positions, prepare
from kraftline.schema.control.frame import ControlType, decode_control_key, decode_control_value
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.frame import decode_record
from kraftline.storage.names import SnapshotState
from kraftline.storage.partition_dir import PartitionDirectory
from kraftline.storage.segment import SegmentReader

_WINDOW = 1024 * 1024
_CONTROL = 0x20
_FEATURE_LEVEL = 12
_FRAME = 1
# Beyond this the answer would no longer be quick.
_MOST_BYTES = 256 * 1024 * 1024
# Kafka does not compress metadata; what hostile bytes may make of themselves.
_MOST_OPENED = 8 * 1024 * 1024


class Features(msgspec.Struct):
    """Feature levels by name, and voters by id where the log names them."""

    levels: dict[str, int]
    voters: tuple[int, ...] | None = None
    kraft_version: int | None = None


def read_features(directory: PartitionDirectory, bootstrap: str | None) -> Features | None:
    """What the snapshot and log come to; None where that would take long."""
    whole = [s for s in directory.snapshots if s.state is SnapshotState.WHOLE]
    newest = max(whole, key=lambda s: s.id, default=None)
    base = 0 if newest is None else newest.id.end_offset
    logs = [s for s in directory.segments if s.size]
    later = [s for n, s in enumerate(logs) if n + 1 == len(logs) or logs[n + 1].base_offset > base]
    if sum(s.size for s in later) + (newest.size if newest else 0) > _MOST_BYTES:
        return None
    found = Features({})
    start = bootstrap if newest is None else newest.path
    if start is not None:
        _read(start, -1, found)
    for segment in later:
        _read(segment.path, base, found)
    return found


def _read(path: str, from_offset: int, found: Features) -> None:
    scratch = Scratch()
    try:
        with SegmentReader(path, window=_WINDOW, on_damage=lambda _: None) as reader:
            for run in reader.runs():
                at = run.start
                while at < run.end:
                    part = prepare(
                        run.buffer,
                        at,
                        run.end,
                        check_crc=False,
                        on_error=lambda _: None,
                        scratch=scratch,
                        limit=_MOST_OPENED,
                        budget=_MOST_OPENED,
                    )
                    for places in positions(part):
                        _take(part, places, from_offset, found)
                    at = part.end
    except (KraftlineError, OSError):
        return  # what cannot be read is told elsewhere


def _take(run: Run, places: Places, from_offset: int, found: Features) -> None:
    source, numbers, stride = places
    for at in range(0, len(numbers), stride):
        if numbers[at + kernel.P_OFFSET] < from_offset:
            continue
        start, end = numbers[at + kernel.P_VALUE], numbers[at + kernel.P_VALUE_END]
        if end - start < 2:
            continue
        row = numbers[at + kernel.P_ROW] * kernel.STRIDE
        try:
            if run.table[row + kernel.ATTRIBUTES] & _CONTROL:
                key = bytes(
                    source[numbers[at + kernel.P_KEY] : max(0, numbers[at + kernel.P_KEY_END])]
                )
                _control(key, bytes(source[start:end]), found)
            elif source[start] == _FRAME and source[start + 1] == _FEATURE_LEVEL:
                record, _ = decode_record(bytes(source[start:end]))
                assert isinstance(record, FeatureLevelRecord)
                found.levels[record.name] = record.feature_level
        except BadData:
            continue


def _control(key: bytes, value: bytes, found: Features) -> None:
    kind = decode_control_key(key)
    if kind == ControlType.KRAFT_VOTERS:
        message, _ = decode_control_value(kind, value)
        assert isinstance(message, VotersRecord)
        found.voters = tuple(voter.voter_id for voter in message.voters)
    elif kind == ControlType.KRAFT_VERSION:
        message, _ = decode_control_value(kind, value)
        assert isinstance(message, KRaftVersionRecord)
        found.kraft_version = message.kraft_version

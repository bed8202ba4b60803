"""What one file is, and what is in it: a summary by kind of file."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from kraftline.errors import BadData, KraftlineError
from kraftline.inspect.info.segments import first_batch
from kraftline.records.framing import as_view
from kraftline.records.kernel import active as kernel
from kraftline.records.record import Codec
from kraftline.schema.control.frame import ControlType, decode_control_key, decode_control_value
from kraftline.schema.control.snapshot_header_record import SnapshotHeaderRecord
from kraftline.storage import (
    checkpoints,
    clean_shutdown,
    meta_properties,
    offset_index,
    partition_metadata,
    producer_snapshot,
    quorum_state,
    time_index,
    txn_index,
)
from kraftline.storage.detect import PathKind
from kraftline.storage.names import SnapshotState, parse_snapshot
from kraftline.storage.segment import Damage, SegmentReader, TailKind
from kraftline.storage.snapshot_file import SnapshotReader

_ROWS = 4096
_NO_TIMESTAMP = -1


class FileInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A file: `content` is its summary, with keys by kind; `unreadable` says what hides."""

    path: str
    kind: str
    size: int
    content: dict[str, Any]
    unreadable: tuple[str, ...] = ()


def file_info(path: str, kind: PathKind) -> FileInfo:
    size = os.path.getsize(path)
    unreadable: list[str] = []
    content: dict[str, Any] = {}
    try:
        content = _READERS[kind](path, unreadable)
    except BadData as error:
        error.file = None
        unreadable.append(str(error))
    return FileInfo(
        path=path, kind=kind.value, size=size, content=content, unreadable=tuple(unreadable)
    )


def _segment(path: str, unreadable: list[str]) -> dict[str, Any]:
    """All headers, no records."""
    damages: list[Damage] = []
    table = array("q", bytes(8 * kernel.STRIDE * _ROWS))
    batches = records = control = transactional = 0
    codecs: Counter[str] = Counter()
    magics: Counter[int] = Counter()
    producers: set[int] = set()
    first = first_batch(path)
    last_offset, newest, epochs = -1, _NO_TIMESTAMP, set()
    with SegmentReader(path, on_damage=damages.append) as reader:
        for run in reader.runs():
            view, at = as_view(run.buffer), run.start
            while at < run.end:
                rows, at, _ = kernel.scan(view, at, run.end, run.position - run.start, table)
                if rows == 0:
                    break
                columns = [table[c : rows * kernel.STRIDE : kernel.STRIDE] for c in range(16)]
                batches += rows
                records += sum(n for n in columns[kernel.COUNT] if n > 0)
                for bits, found in Counter(columns[kernel.ATTRIBUTES]).items():
                    codecs[_codec(bits & 7)] += found
                    transactional += found if bits & 0x10 else 0
                    control += found if bits & 0x20 else 0
                magics.update(columns[kernel.MAGIC])
                epochs.update(columns[kernel.LEADER_EPOCH])
                if len(producers) < 1000:
                    producers.update(columns[kernel.PRODUCER_ID])
                last_offset = (
                    columns[kernel.BASE_OFFSET][-1] + columns[kernel.LAST_OFFSET_DELTA][-1]
                )
                newest = max(newest, *columns[kernel.MAX_TIMESTAMP])
        tail = reader.tail
    unreadable += [f"position {d.position}: {d.reason}" for d in damages]
    return {
        "first_offset": None if first is None else first[0],
        "last_offset": last_offset if batches else None,
        "first_timestamp": None if first is None else first[1],
        "last_timestamp": None if newest == _NO_TIMESTAMP else newest,
        "batches": batches,
        # Formats v0 and v1 do not say how many records a wrapper holds.
        "records": records if set(magics) <= {2} else None,
        "formats": {f"v{magic}": count for magic, count in sorted(magics.items())},
        "codecs": dict(codecs),
        "control_batches": control,
        "transactional_batches": transactional,
        "producers": len(producers - {-1}),
        "leader_epochs": sorted(epochs - {-1})[:100],
        "tail": (TailKind.COMPLETE if tail is None else tail.kind).value,
    }


def _codec(number: int) -> str:
    return Codec(number).name.lower() if number <= Codec.ZSTD else f"unknown {number}"


def _snapshot(path: str, unreadable: list[str]) -> dict[str, Any]:
    name = parse_snapshot(os.path.basename(path))
    batches = _segment(path, unreadable)
    if not unreadable and not (name and name.state is SnapshotState.PARTIAL):
        unreadable += _refused(path)
    content: dict[str, Any] = {
        "end_offset": None if name is None else name.id.end_offset,
        "epoch": None if name is None else name.id.epoch,
        "last_contained_log_timestamp": snapshot_time(path),
        "written": batches["last_timestamp"],
        "records": batches["records"],
        "batches": batches["batches"],
        "tail": batches["tail"],
    }
    return content


def _refused(path: str) -> list[str]:
    """Why a node would not take a snapshot: where it is cut, for one."""
    try:
        with SnapshotReader(path) as snapshot:
            for _ in snapshot.batches():
                pass
    except BadData as error:
        error.file = None
        return [str(error)]
    return []


def snapshot_time(path: str) -> int | None:
    """When the last record that the snapshot covers was written, by its header."""
    try:
        with SegmentReader(path) as reader:
            batch, _ = next(reader.batches())
            for record in batch.records() if batch.is_control else ():
                if decode_control_key(record.key or b"") == ControlType.SNAPSHOT_HEADER:
                    header, _ = decode_control_value(
                        ControlType.SNAPSHOT_HEADER, record.value or b""
                    )
                    assert isinstance(header, SnapshotHeaderRecord)
                    return header.last_contained_log_timestamp
    except (KraftlineError, StopIteration):
        pass
    return None


def _offset_index(path: str, unreadable: list[str]) -> dict[str, Any]:
    index = offset_index.read_offset_index(path)
    entries = [] if not len(index) else [next(iter(index)), offset_index.lookup(index, 2**62)]
    return {
        "entries": len(index),
        "first": None if not entries else _entry(entries[0]),
        "last": None if not entries else _entry(entries[1]),
        "preallocated_bytes": index.zero_tail,
    }


def _time_index(path: str, unreadable: list[str]) -> dict[str, Any]:
    index = time_index.read_time_index(path)
    entries = [] if not len(index) else [next(iter(index)), time_index.lookup(index, 2**62)]
    return {
        "entries": len(index),
        "first": None if not entries else _entry(entries[0]),
        "last": None if not entries else _entry(entries[1]),
        "preallocated_bytes": index.zero_tail,
    }


def _entry(entry: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry)
    return plain


def _txn_index(path: str, unreadable: list[str]) -> dict[str, Any]:
    entries = txn_index.read_txn_index(path)
    return {
        "aborted_transactions": len(entries),
        "first": _entry(entries[0]) if entries else None,
        "last": _entry(entries[-1]) if entries else None,
    }


def _producer_snapshot(path: str, unreadable: list[str]) -> dict[str, Any]:
    entries = producer_snapshot.read_producer_snapshot(path)
    return {
        "producers": len(entries),
        "open_transactions": sum(e.current_txn_first_offset >= 0 for e in entries),
        "last_offset": max((e.last_offset for e in entries), default=None),
        "last_timestamp": max((e.timestamp for e in entries), default=None),
    }


def _leader_epochs(path: str, unreadable: list[str]) -> dict[str, Any]:
    entries = checkpoints.read_leader_epochs(path)
    return {"epochs": [_entry(entry) for entry in entries]}


def _offset_checkpoint(path: str, unreadable: list[str]) -> dict[str, Any]:
    entries = checkpoints.read_offset_checkpoint(path)
    return {
        "partitions": len(entries),
        "entries": [_entry(entry) for entry in entries],
    }


def _struct(read: Callable[[str], msgspec.Struct]) -> Callable[[str, list[str]], dict[str, Any]]:
    def content(path: str, unreadable: list[str]) -> dict[str, Any]:
        found = read(path)
        return {
            name: str(value) if isinstance(value, bytes) else value
            for name, value in msgspec.structs.asdict(found).items()
        }

    return content


_READERS: dict[PathKind, Callable[[str, list[str]], dict[str, Any]]] = {
    PathKind.SEGMENT: _segment,
    PathKind.SNAPSHOT: _snapshot,
    PathKind.BOOTSTRAP: _snapshot,
    PathKind.OFFSET_INDEX: _offset_index,
    PathKind.TIME_INDEX: _time_index,
    PathKind.TXN_INDEX: _txn_index,
    PathKind.PRODUCER_SNAPSHOT: _producer_snapshot,
    PathKind.LEADER_EPOCHS: _leader_epochs,
    PathKind.OFFSET_CHECKPOINT: _offset_checkpoint,
    PathKind.META_PROPERTIES: _struct(meta_properties.read_meta_properties),
    PathKind.PARTITION_METADATA: _struct(partition_metadata.read_partition_metadata),
    PathKind.QUORUM_STATE: _struct(quorum_state.read_quorum_state),
    PathKind.CLEAN_SHUTDOWN: _struct(clean_shutdown.read_clean_shutdown),
}

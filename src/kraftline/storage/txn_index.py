"""`.txnindex`: the transactions aborted in a segment. 34-byte entries, made at the first abort.

An entry is version int16 = 0, producer id, first offset, last offset (of the abort marker) and
last stable offset at that moment, all int64. Last offsets rise. Never preallocated.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import msgspec

from kraftline.errors import Corrupt, Truncated, Unsupported
from kraftline.storage.files import Path, Source, load, write_aside
from kraftline.storage.names import base_offset_of

ENTRY = 34
_ENTRY = struct.Struct(">hqqqq")


class AbortedTxn(msgspec.Struct, frozen=True, gc=False):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_txn_index(source: Source, base_offset: int | None = None) -> tuple[AbortedTxn, ...]:
    """All entries; Corrupt where they do not rise or end before the segment starts."""
    data, file = load(source)
    if base_offset is None:
        base_offset = (base_offset_of(file) if file else None) or 0
    if len(data) % ENTRY:
        raise Truncated(
            f"{len(data)} bytes, which is not a multiple of {ENTRY}",
            file=file,
            position=len(data) - len(data) % ENTRY,
        )
    entries = []
    previous = base_offset - 1
    for n, (version, *fields) in enumerate(_ENTRY.iter_unpack(data)):
        if version != 0:
            raise Unsupported(
                f"version {version} of an aborted transaction", file=file, position=n * ENTRY
            )
        entry = AbortedTxn(*fields)
        if entry.last_offset <= previous:
            raise Corrupt(
                f"the last offset {entry.last_offset} must be above {previous}",
                file=file,
                position=n * ENTRY,
            )
        previous = entry.last_offset
        entries.append(entry)
    return tuple(entries)


def aborted_between(
    entries: Iterable[AbortedTxn], start: int, end: int
) -> tuple[tuple[AbortedTxn, ...], bool]:
    """Transactions that touch offsets start..end (exclusive), and whether the search is over.

    Where it is not, aborts of transactions that began in the range may be in later segments.
    """
    found = []
    for entry in entries:
        if entry.last_offset >= start and entry.first_offset < end:
            found.append(entry)
        if entry.last_stable_offset >= end:
            return tuple(found), True
    return tuple(found), False


def format_txn_index(entries: Iterable[AbortedTxn]) -> bytes:
    return b"".join(
        _ENTRY.pack(0, e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset)
        for e in entries
    )


def write_txn_index(path: Path, entries: Iterable[AbortedTxn]) -> None:
    write_aside(path, format_txn_index(entries))

"""What a consumer with `isolation.level=read_committed` is shown of a partition's files.

Control records are not, nor the data of aborted transactions, nor what lies behind the first
record of a transaction that is still open, nor what was deleted below the log's start. How far
replicas had come (the high watermark) cannot be known from one directory: its end counts.

Aborts are in `.txnindex` files, which Kafka makes at a segment's first abort: where a segment has
an offset index and no `.txnindex`, nothing was aborted in it. The headers of a bare `.log` are
walked, as is the end of every log, from the newest producer snapshot on: that tells which
transactions are open there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from kraftline.errors import BadData
from kraftline.spark.sources.log_walk import LogWalk
from kraftline.spark.sources.segment_logs import (
    PartitionLog,
    companions,
    content,
    log_start_offset,
    whole_log,
)
from kraftline.spark.sources.splits import Piece
from kraftline.storage.names import FileKind, SegmentFileName
from kraftline.storage.producer_snapshot import read_producer_snapshot
from kraftline.storage.txn_index import AbortedTxn, read_txn_index


class Outcome(Struct, frozen=True):
    """Aborted transactions by last offset, and the offset from which on nothing is decided."""

    aborted: tuple[AbortedTxn, ...]
    last_stable_offset: int
    log_start_offset: int


def committed(log: PartitionLog, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces as a consumer is shown them."""
    return shown(pieces, outcome_of(log))


def shown(pieces: Sequence[Piece], outcome: Outcome) -> list[Piece]:
    ends = [*sorted({piece.base_offset for piece in pieces}), outcome.last_stable_offset]
    following = dict(itertools.pairwise(ends))
    found = []
    for piece in pieces:
        end = outcome.last_stable_offset
        if piece.bounds.end_offset is not None:
            end = min(end, piece.bounds.end_offset)
        start = max(piece.bounds.start_offset, outcome.log_start_offset)
        until = max(following[piece.base_offset], piece.base_offset)
        found.append(
            msgspec.structs.replace(
                piece,
                committed=True,
                bounds=msgspec.structs.replace(piece.bounds, start_offset=start, end_offset=end),
                aborted=tuple(
                    each
                    for each in outcome.aborted
                    if each.last_offset >= piece.base_offset and each.first_offset < until
                ),
            )
        )
    return found


def outcome_of(log: PartitionLog) -> Outcome:
    """How the transactions in a partition's files ended."""
    log = whole_log(log)
    walk = begin_walk(log)
    walk.advance(log)
    return Outcome(aborted_of(log, walk), walk.last_stable_offset, log_start_offset(log))


def aborted_of(log: PartitionLog, walk: LogWalk) -> tuple[AbortedTxn, ...]:
    """What the indexes say, and what a walk has seen besides."""
    found = {(each.producer_id, each.last_offset): each for each in walk.aborted}
    for name, path in companions(log.directory).items():
        if name.kind is FileKind.TXN_INDEX:
            try:
                entries = read_txn_index(content(path), name.offset)
            except BadData as error:
                raise error.at(
                    file=path, hint="without this index aborted records would pass for good ones"
                ) from None
            found |= {(each.producer_id, each.last_offset): each for each in entries}
    return tuple(sorted(found.values(), key=lambda each: each.last_offset))


def begin_walk(log: PartitionLog) -> LogWalk:
    """A walk that begins where indexes and producer snapshots no longer tell."""
    files = companions(log.directory)
    bare = [
        segment.offset
        for segment in log.segments
        if SegmentFileName(segment.offset, FileKind.OFFSET_INDEX) not in files
    ]
    snapshots = sorted(
        (name.offset, path)
        for name, path in files.items()
        if name.kind is FileKind.PRODUCER_SNAPSHOT and (not bare or name.offset <= bare[0])
    )
    for offset, path in reversed(snapshots):
        try:
            producers = read_producer_snapshot(content(path))
        except BadData:
            continue  # Kafka too goes back to an older one
        unfinished = {
            producer.producer_id: producer.current_txn_first_offset
            for producer in producers
            if producer.current_txn_first_offset >= 0
        }
        return LogWalk(offset, unfinished)
    return LogWalk(log.segments[0].offset)

"""`kafka_segments` as a stream: follows partitions as a broker writes them.

How far a stream has come is an offset for each partition's directory, nothing of files: so it
stands when segments roll, are compacted or are deleted, and a restart from the checkpoint reads
the same records again or none. The end of a micro-batch is behind the last whole batch, under
`isolation=read_committed` at the last stable offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kraftline.errors import NotKafka
from kraftline.spark.inputs import is_local
from kraftline.spark.sources.following import Offsets, check_whole, further, last_segment, walked
from kraftline.spark.sources.isolation import Outcome, aborted_of, begin_walk, shown
from kraftline.spark.sources.log_walk import LogWalk
from kraftline.spark.sources.segment_logs import PartitionLog, log_start_offset
from kraftline.spark.sources.segment_options import SegmentOptions
from kraftline.spark.sources.segments import pieces_of, read_split, wanted_logs
from kraftline.spark.sources.splits import Piece, plan_splits


class SegmentStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One per query; it lives on the driver as long as the query runs."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._walks: dict[str, LogWalk] = {}
        self._target: Offsets | None = None
        for path in options.paths:
            if not is_local(path):
                raise NotKafka(
                    f"{path}: a stream follows local files; object stores have no growing ones"
                )

    def initialOffset(self) -> Offsets:
        """Nothing is read yet: every partition starts with what its first segment has."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_records
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        ends = self._ends() if self._target is None else self._target
        reached = further(start, ends, skip_damage=self._options.skip_damage)
        if isinstance(limit, ReadMaxRows):
            there = {path: reached[path] for path in ends}
            return {**reached, **self._limited(start, there, limit.max_rows)}
        return reached

    def reportLatestOffset(self) -> Offsets:
        return self._ends()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        pieces = [
            piece
            for log in wanted_logs(self._options)
            if end.get(log.directory, 0) > start.get(log.directory, 0)
            for piece in self._pieces(log, start.get(log.directory), end[log.directory])
        ]
        return plan_splits(pieces, self._options.split_bytes) if pieces else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self._schema, self._options)

    def _ends(self) -> Offsets:
        return {log.directory: self._end(log) for log in wanted_logs(self._options)}

    def _end(self, log: PartitionLog) -> int:
        walk = self._walked(log)
        return walk.last_stable_offset if self._options.committed else walk.end_offset

    def _walked(self, log: PartitionLog) -> LogWalk:
        return walked(self._walks, log, begin_walk if self._options.committed else last_segment)

    def _limited(self, start: Offsets, ends: Offsets, most: int) -> Offsets:
        """Ends that are at most so many records away in all, shared out among the partitions."""
        firsts = {log.directory: log.segments[0].offset for log in wanted_logs(self._options)}
        waiting = {
            path: end - max(start.get(path, 0), firsts.get(path, 0)) for path, end in ends.items()
        }
        limited: Offsets = {}
        for left, path in enumerate(sorted(waiting, key=waiting.__getitem__)):
            share = min(waiting[path], -(-most // (len(waiting) - left)))
            limited[path] = ends[path] - waiting[path] + share
            most -= share
        return limited

    def _pieces(self, log: PartitionLog, start: int | None, end: int) -> list[Piece]:
        own = self._options
        first = log.segments[0].offset
        check_whole(log.directory, first, start, end, skip_damage=own.skip_damage)
        options = msgspec.structs.replace(
            own,
            start_offset=max(own.start_offset or 0, start or 0),
            end_offset=end if own.end_offset is None else min(end, own.end_offset),
            committed=False,
        )
        pieces = pieces_of(log, options)
        if not own.committed:
            return pieces
        # Up to `end` all is decided, whatever was opened since.
        outcome = Outcome(aborted_of(log, self._walked(log)), end, log_start_offset(log))
        return shown(pieces, outcome)

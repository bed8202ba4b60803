"""`kraft_metadata` as a stream: follows metadata logs as nodes write them.

How far a stream has come is an offset for each directory, nothing of files: so it stands when
segments roll or are deleted, and a restart from the checkpoint reads the same records again or
none. A micro-batch ends behind the last whole batch. Snapshots say nothing new and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kraftline.errors import NotKafka
from kraftline.spark.inputs import InputFile, InputKind, is_local
from kraftline.spark.sources.following import Offsets, check_whole, further, last_segment, walked
from kraftline.spark.sources.log_walk import LogWalk
from kraftline.spark.sources.metadata import metadata_files, read_split, splits_of
from kraftline.spark.sources.metadata_options import MetadataOptions
from kraftline.spark.sources.segment_logs import PartitionLog
from kraftline.spark.sources.splits import Bounds, piece_of


class MetadataStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One per query; it lives on the driver as long as the query runs."""

    def __init__(self, options: MetadataOptions, schema: StructType) -> None:
        self._options, self._names = options, schema.names
        self._walks: dict[str, LogWalk] = {}
        self._target: Offsets | None = None
        for path in options.paths:
            if not is_local(path):
                raise NotKafka(
                    f"{path}: a stream follows local files; object stores have no growing ones"
                )

    def initialOffset(self) -> Offsets:
        """Nothing is read yet: every log starts with what its first segment has."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends(_logs(self._segments()))

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        ends = self._ends(_logs(self._segments())) if self._target is None else self._target
        return further(start, ends, skip_damage=self._options.skip_damage)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        segments = self._segments()
        pieces = []
        for log in _logs(segments):
            begin, stop = start.get(log.directory), end.get(log.directory, 0)
            if stop <= (begin or 0):
                continue
            first = log.segments[0].offset
            check_whole(log.directory, first, begin, stop, skip_damage=self._options.skip_damage)
            bounds = Bounds(start_offset=begin or 0, end_offset=stop)
            found = (piece_of(log, segment, bounds) for segment in log.segments)
            pieces += [piece for piece in found if piece is not None]
        return splits_of(pieces, segments, self._options) if pieces else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self._names, self._options)

    def _segments(self) -> list[InputFile]:
        files = metadata_files(self._options)
        return [file for file in files if file.kind is InputKind.SEGMENT]

    def _ends(self, logs: Sequence[PartitionLog]) -> Offsets:
        return {log.directory: walked(self._walks, log, last_segment).end_offset for log in logs}


def _logs(segments: Sequence[InputFile]) -> list[PartitionLog]:
    found: dict[str, list[InputFile]] = {}
    for segment in segments:
        found.setdefault(segment.directory, []).append(segment)
    return [
        PartitionLog(directory, files[0].topic, 0, tuple(sorted(files, key=lambda f: f.offset)))
        for directory, files in sorted(found.items())
    ]

"""`kraft_metadata`: metadata logs and snapshots of nodes and clusters, a row per record.

    spark.read.format("kraft_metadata").load("/var/lib/kafka")

Every copy is read as it is: what of them is one log, `kraftline history build` decides. Rows of
snapshots are marked. `.schema("offset long, type string")` reads only those columns. Options:
`clusterId` (where no meta.properties says it), `payload` (json, none), `structs` (all, none, or
record types: a struct column each), `onDamage` (fail, skip), `splitBytes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kraftline.errors import NotKafka
from kraftline.spark.inputs import InputFile, find_inputs, of_clusters
from kraftline.spark.plan_types import Quarantined
from kraftline.spark.sources.metadata_options import MetadataOptions, parse_options
from kraftline.spark.sources.metadata_rows import MetadataRows, schema_of
from kraftline.spark.sources.segment_columns import checked
from kraftline.spark.sources.segment_logs import on_disk
from kraftline.spark.sources.segment_reading import OnDamage
from kraftline.spark.sources.segments import log_damage, raise_damage
from kraftline.spark.sources.splits import Bounds, Piece, plan_splits
from kraftline.spark.workers import settle
from kraftline.storage.segment import Damage, SegmentReader, TailKind

if TYPE_CHECKING:
    from kraftline.spark.sources.metadata_stream import MetadataStreamReader

_WINDOW: Final = 4 * 1024 * 1024


class KraftMetadata(DataSource):
    """The source itself; see the top of this file."""

    @classmethod
    def name(cls) -> str:
        return "kraft_metadata"

    def schema(self) -> StructType:
        return offered(parse_options(self.options))

    def reader(self, schema: StructType) -> MetadataBatchReader:
        options = parse_options(self.options)
        return MetadataBatchReader(options, checked(schema, offered(options)))

    def streamReader(self, schema: StructType) -> MetadataStreamReader:
        from kraftline.spark.sources.metadata_stream import MetadataStreamReader

        options = parse_options(self.options)
        return MetadataStreamReader(options, checked(schema, offered(options)))


def offered(options: MetadataOptions) -> StructType:
    """All columns there are under these options."""
    return from_arrow_schema(schema_of(options.structs, payload=options.payload))


class MetadataSplit(InputPartition):
    """What one task reads: parts of files, and what is known of each file."""

    def __init__(self, parts: tuple[tuple[Piece, InputFile], ...]) -> None:
        super().__init__(None)
        self.parts = parts


class MetadataBatchReader(DataSourceReader):
    """Plans splits, and reads one in a task."""

    def __init__(self, options: MetadataOptions, schema: StructType) -> None:
        self._options, self._names = options, schema.names

    def partitions(self) -> Sequence[InputPartition]:
        files = metadata_files(self._options)
        return splits_of([whole(file) for file in files], files, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self._names, self._options)


def metadata_files(options: MetadataOptions) -> list[InputFile]:
    """The segments and snapshots behind the paths."""
    found = [file for file in find_inputs(options.paths) if file.is_metadata]
    if not found:
        raise NotKafka(
            f"{', '.join(options.paths)}: no metadata log is in it; that is in the directory that "
            "metadata.log.dir names, or else in the first of log.dirs"
        )
    return of_clusters(found, options.cluster_id)


def whole(file: InputFile, bounds: Bounds | None = None) -> Piece:
    return Piece(
        path=file.path,
        topic=file.topic,
        partition=0,
        base_offset=file.offset,
        start=0,
        end=file.size,
        may_grow=file.newest,
        bounds=bounds or Bounds(),
    )


def splits_of(
    pieces: Sequence[Piece], files: Sequence[InputFile], options: MetadataOptions
) -> list[InputPartition]:
    by_path = {file.path: file for file in files}
    return [
        MetadataSplit(tuple((piece, by_path[piece.path]) for piece in split.pieces))
        for split in plan_splits(pieces, options.split_bytes)
    ]


def read_split(
    partition: InputPartition, names: Sequence[str], options: MetadataOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of one split; in a task."""
    if not isinstance(partition, MetadataSplit):  # there was nothing to plan
        return
    schema = schema_of(options.structs, payload=options.payload)
    rows = MetadataRows(pa.schema([schema.field(name) for name in names]))
    on_damage = log_damage if options.skip_damage else raise_damage
    for piece, file in partition.parts:
        first, end = piece.bounds.start_offset, piece.bounds.end_offset
        for position, data in _runs(piece):
            if isinstance(data, Damage):
                on_damage(data)
                continue
            for found in rows.of(data, file, position, first, end):
                if isinstance(found, Quarantined):
                    _tell(found, piece, on_damage)
                else:
                    yield found
    settle()


def _runs(piece: Piece) -> Iterator[tuple[int, bytes | Damage]]:
    """Whole batches by their position, and damage between them."""
    waiting: list[Damage] = []
    with (
        on_disk(piece.path, piece.start, piece.end) as path,
        SegmentReader(path, window=_WINDOW, on_damage=waiting.append) as reader,
    ):
        for run in reader.runs(piece.start, piece.end):
            yield run.position, bytes(run.buffer[run.start : run.end])
            yield from ((damage.position, damage) for damage in waiting)
            waiting.clear()
        tail = reader.tail
        if tail is not None and tail.kind is TailKind.PARTIAL and not piece.may_grow:
            reader.report(tail.position, tail.length, "the segment ends within a batch")
        yield from ((damage.position, damage) for damage in waiting)


def _tell(found: Quarantined, piece: Piece, on_damage: OnDamage) -> None:
    """Damage inside of a batch. A record that cannot be read is a row like others."""
    if found.kind == "damage":
        position = found.from_position or 0
        on_damage(
            Damage(
                file=piece.path,
                position=position,
                length=0,
                reason=found.reason,
                offset=found.from_offset,
            )
        )

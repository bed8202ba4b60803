"""The history tables of a build, in two steps of tasks.

First everything but partitions, a cluster at a time, from the files of their types; then all
partitions, which an exchange brings together by topic. Tasks write the tables' files themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from kraftline.lake.files import Added, open_for_reading
from kraftline.lake.tables import TABLES
from kraftline.spark.frames import frame_of
from kraftline.spark.history import exchange
from kraftline.spark.history.around import Around
from kraftline.spark.history.effects import CONTROLS, Logged
from kraftline.spark.history.exchange import OpenFile, RecordFile
from kraftline.spark.history.lives import Life
from kraftline.spark.history.moments import Leg, unit_of
from kraftline.spark.history.out import added_by_table, tables_out
from kraftline.spark.history.partitions import Partitions
from kraftline.spark.history.placed import LIFE, OVER_GAP
from kraftline.spark.history.rows import Rows
from kraftline.spark.history.things import OPENED, TYPES, Things
from kraftline.spark.record_table import file_schema, records_table, struct_name
from kraftline.spark.tasks import frame_of_tasks, in_words, run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASK_ROWS: Final = 1_000_000
# What a task works on at a time.
_BUCKET_ROWS: Final = 100_000
_OPEN_ROWS: Final = 10_000  # in a file of open rows, about
_FOUND: Final = pa.schema(
    [
        pa.field("what", pa.string()),
        *(exchange.ROWS.field(name) for name in ("cluster_id", "topic_id", "leg")),
        *(exchange.ROWS.field(name) for name in ("offset", "index", "how", "payload")),
    ]
)
_WROTE, _AROUND, _SAID = "wrote", "around", "said"
_MOMENT: Final = ("leg", "offset", "index", "in_snapshot", "epoch", "log_time", "file", "position")
_BEFORE_LOG: Final = ("valid_from_offset", "valid_from_time")


def write_history(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: pa.Table,
    opened: Sequence[OpenFile] = (),
) -> dict[str, list[Added]]:
    """Write every history table, `health` and `changes` for the clusters in `legs`; the files of
    each, which nobody sees yet.

    `records` are newly staged; of a leg that goes on they must begin with the Begin of a
    transaction that was open when it was built last. `opened` rows come out again, closed or still
    open.
    """
    by_cluster = _legs(legs)
    found = _write_things(spark, root, records, by_cluster, opened)
    added = added_by_table(found.payloads(_WROTE))
    arounds = {
        each.cluster_id: each
        for each in (msgspec.msgpack.decode(p, type=Around) for p in found.payloads(_AROUND))
    }
    written = _write_partitions(spark, root, records, arounds, opened, found)
    for table, files in added_by_table(written).items():
        added.setdefault(table, []).extend(files)
    return {name: added.get(name, []) for name in (*OPENED, "partitions", "changes")}


def _legs(legs: pa.Table) -> dict[str, list[Leg]]:
    found: dict[str, list[Leg]] = {}
    times = legs.column("next_base_time").cast(pa.int64()).to_pylist()
    for row, time in zip(legs.to_pylist(), times, strict=True):
        leg = Leg(
            row["leg"],
            row["next_base_offset"],
            time,
            row["end_offset"],
            row["committed_to"],
            row["continued"],
        )
        found.setdefault(row["cluster_id"], []).append(leg)
    return {name: sorted(each, key=lambda leg: leg.leg) for name, each in found.items()}


class _Found:
    """What the first step gave."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def payloads(self, what: str) -> list[bytes]:
        chosen = self._rows.filter(pc.equal(self._rows.column("what"), what))
        found: list[bytes] = chosen.column("payload").to_pylist()
        return found

    @property
    def said(self) -> pa.Table:
        """What is said of topics, as rows before those of their partitions."""
        chosen = self._rows.filter(pc.equal(self._rows.column("what"), _SAID))
        columns = {name: chosen.column(name) for name in _FOUND.names if name != "what"}
        return exchange.shaped(
            {**columns, "partition": exchange.BEFORE_PARTITIONS}, chosen.num_rows
        )


class _Share(Struct):
    """The work of one task: a cluster."""

    cluster_id: str
    legs: list[Leg]
    records: list[RecordFile]
    opened: list[OpenFile]

    @property
    def weight(self) -> int:
        return 1 + sum(file.rows for file in self.records)


def _write_things(
    spark: SparkSession,
    root: str,
    records: Iterable[RecordFile],
    legs: Mapping[str, list[Leg]],
    opened: Iterable[OpenFile],
) -> _Found:
    shares = {name: _Share(name, mine, [], []) for name, mine in legs.items()}
    for file in records:
        if file.type in TYPES:
            shares[file.cluster_id].records.append(file)
    for row in opened:
        if row.table in OPENED and row.cluster_id in shares:
            shares[row.cluster_id].opened.append(row)
    slots = spark.sparkContext.defaultParallelism
    work = shared_out(shares.values(), lambda share: share.weight, slots)
    return _Found(run_tasks(spark, work, lambda mine: _things(mine, root), _FOUND))


def _things(shares: Sequence[_Share], root: str) -> Iterator[pa.RecordBatch]:
    said: list[dict[str, Any]] = []
    with tables_out(root) as out:
        for share in shares:
            rows = Rows(share.cluster_id, out)
            around, topics = _replayed(share, root, rows)
            rows.flush()
            said.append({"what": _AROUND, "payload": msgspec.msgpack.encode(around)})
            said += topics
    said += [{"what": _WROTE, "payload": each} for each in out.said()]
    yield pa.RecordBatch.from_pylist(said, _FOUND)


def _replayed(share: _Share, root: str, rows: Rows) -> tuple[Around, list[dict[str, Any]]]:
    around = Around(share.cluster_id, {})
    said: list[dict[str, Any]] = []
    before: Things | None = None
    log = _Log(f"{root}/{records_table().name}", share.records)
    for leg in share.legs:
        things = Things(leg, rows, before)
        if leg.continued:
            for file in share.opened:
                for row in _opened(f"{root}/{file.table}/{file.path}", file.table):
                    things.opened(file.table, row)
        things.replay(log.units(leg.leg))
        things.finish()
        around.legs[leg.leg] = things.around
        said += [_said(share.cluster_id, life.leg, LIFE, life) for life in things.lives]
        said += [_said(share.cluster_id, gap.leg, OVER_GAP, gap) for gap in things.over_gap]
        before = None if leg.next_base_offset is None else things
    return around, said


def _said(cluster_id: str, leg: int, how: int, said: Any) -> dict[str, Any]:
    is_life = isinstance(said, Life)
    return {
        "what": _SAID,
        "cluster_id": cluster_id,
        "topic_id": said.topic_id,
        "leg": leg,
        "offset": said.offset if is_life else 0,
        "index": said.index if is_life else 0,
        "how": how,
        "payload": msgspec.msgpack.encode(said),
    }


def _opened(path: str, table: str) -> Iterator[dict[str, Any]]:
    schema = TABLES[table]
    names = schema.columns.names
    own = names[1 : names.index(_BEFORE_LOG[0])]
    with open_for_reading(path) as source, pq.ParquetFile(source) as file:
        rows = file.read([*own, *_BEFORE_LOG])
    yield from _with_plain_times(rows).to_pylist()


def _with_plain_times(rows: pa.Table) -> pa.Table:
    """Times as microseconds."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(at, field.name, rows.column(at).cast(pa.int64()))
    return rows


class _Log:
    """The records of a cluster that are no partitions', in the order of the log."""

    def __init__(self, folder: str, files: Iterable[RecordFile]) -> None:
        self._columns: list[dict[str, list[Any]]] = []
        self._types: list[str] = []
        places = []
        for number, file in enumerate(files):
            rows = _read(f"{folder}/{file.path}", file)
            self._types.append(file.type)
            self._columns.append(
                {name: rows.column(name).to_pylist() for name in rows.column_names}
            )
            keys = [rows.column(name).to_numpy() for name in ("leg", "offset", "index")]
            where = [np.full(rows.num_rows, number), np.arange(rows.num_rows)]
            places.append(np.stack([*keys, *where]).astype(np.int64))
        self._places = np.concatenate(places, axis=1) if places else np.zeros((5, 0), np.int64)
        self._places = self._places[:, np.lexsort(self._places[2::-1])]

    def units(self, leg: int) -> Iterator[list[Logged]]:
        """Records of a leg, those of a batch together."""
        mine = self._places[:, self._places[0] == leg]
        unit: list[Logged] = []
        for number, row in zip(mine[3].tolist(), mine[4].tolist(), strict=True):
            record = self._record(number, row)
            if unit and (record.unit is None or record.unit != unit[0].unit):
                yield unit
                unit = []
            unit.append(record)
        if unit:
            yield unit

    def _record(self, number: int, row: int) -> Logged:
        columns, record_type = self._columns[number], self._types[number]
        in_snapshot = columns["in_snapshot"][row]
        file, position = columns["file"][row], columns["position"][row]
        return Logged(
            record_type,
            columns["offset"][row],
            columns["index"][row],
            columns["epoch"][row],
            columns["log_time"][row],
            None if in_snapshot else unit_of(file, position),
            columns["said"][row],
        )


def _read(path: str, file: RecordFile) -> pa.Table:
    struct = "payload" if file.type in CONTROLS else struct_name(file.type)
    has_said = struct in file_schema(file.type).names
    with open_for_reading(path) as source, pq.ParquetFile(source) as opened:
        rows = opened.read([*_MOMENT, *([struct] if has_said else [])])
    said = rows.column(struct) if has_said else pa.nulls(rows.num_rows)
    rows = _with_plain_times(rows.select(_MOMENT)).append_column("said", said)
    return rows.filter(file.wanted(rows))


def _write_partitions(
    spark: SparkSession,
    root: str,
    records: Iterable[RecordFile],
    arounds: Mapping[str, Around],
    opened: Iterable[OpenFile],
    found: _Found,
) -> list[bytes]:
    """The tables that are made of partitions; what was written."""
    mine = [file for file in records if file.type in exchange.PARTITION_TYPES]
    going_on = _going_on(opened, arounds)
    rows = found.said.num_rows + sum(file.rows for file in mine)
    if not rows and not going_on:
        return []
    slots = spark.sparkContext.defaultParallelism
    count = max(4 * slots, rows // _BUCKET_ROWS)
    known = spark.sparkContext.broadcast(dict(arounds))

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tables_out(root) as out:
            for chunks in _buckets(batches):
                Partitions(known.value, out).replay(exchange.in_order(chunks))
        yield pa.RecordBatch.from_arrays([pa.array(out.said(), pa.binary())], ["said"])

    frame = _chunks(spark, root, [*mine, *going_on], found.said, count)
    tasks = max(slots, rows // _TASK_ROWS)
    brought = frame.repartition(tasks, "bucket").sortWithinPartitions("bucket")
    with in_words(root):
        said = brought.mapInArrow(write, "said binary").toArrow()
    known.unpersist()
    texts: list[bytes] = said.column(0).to_pylist()
    return texts


def _going_on(opened: Iterable[OpenFile], arounds: Mapping[str, Around]) -> list[OpenFile]:
    """Files with open rows of partitions, with the leg that goes on."""
    legs = {
        name: leg
        for name, around in arounds.items()
        for leg, known in around.legs.items()
        if known.leg.continued
    }
    return [
        replace(file, leg=legs[file.cluster_id])
        for file in opened
        if file.table in ("partitions", "health") and file.cluster_id in legs
    ]


def _chunks(
    spark: SparkSession,
    root: str,
    files: Sequence[RecordFile | OpenFile],
    said: pa.Table,
    count: int,
) -> DataFrame:
    """All rows as chunks of buckets."""

    def read(file: RecordFile | OpenFile) -> Iterator[pa.Table]:
        if isinstance(file, RecordFile):
            return exchange.records_said(f"{root}/{records_table().name}", file)
        return exchange.opened_said(f"{root}/{file.table}", file)

    def chunks(mine: Sequence[RecordFile | OpenFile]) -> Iterator[pa.RecordBatch]:
        for file in mine:
            for rows in read(file):
                yield from exchange.buckets(rows, count)

    slots = spark.sparkContext.defaultParallelism
    work = shared_out(files, lambda file: 1 + getattr(file, "rows", _OPEN_ROWS), 2 * slots)
    topics = pa.Table.from_batches(exchange.buckets(said, count), exchange.CHUNKS)
    frame = frame_of(spark, topics)
    return frame.union(frame_of_tasks(spark, work, chunks, exchange.CHUNKS)) if work else frame


def _buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[list[bytes]]:
    """Chunks, those of a bucket together."""
    rows = (
        (bucket, chunk)
        for batch in batches
        for bucket, chunk in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for _, found in groupby(rows, key=itemgetter(0)):
        yield [chunk for _, chunk in found]

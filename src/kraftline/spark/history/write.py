"""The history tables of a build, in two steps of tasks.

First everything but partitions, a cluster at a time, from the files of their types; then all
partitions, which Spark brings together by topic. Tasks write the tables' files themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from kraftline.lake.files import Added, open_for_reading
from kraftline.lake.tables import TABLES
from kraftline.spark.frames import frame_of, read_files
from kraftline.spark.history import exchange
from kraftline.spark.history.around import Around
from kraftline.spark.history.lives import Life
from kraftline.spark.history.moments import Leg, unit_of
from kraftline.spark.history.out import TablesOut, added_by_table
from kraftline.spark.history.partitions import Partitions
from kraftline.spark.history.placed import LIFE, OVER_GAP
from kraftline.spark.history.rows import Rows
from kraftline.spark.history.things import CONTROLS, OPENED, TYPES, Logged, Things
from kraftline.spark.record_table import file_schema, records_table, struct_name
from kraftline.spark.tasks import in_words, run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASK_ROWS: Final = 500_000
_FOUND: Final = pa.schema([*exchange.SAID, pa.field("what", pa.string())])
_WROTE, _AROUND, _SAID = "wrote", "around", "said"
_MOMENT: Final = ("leg", "offset", "index", "in_snapshot", "epoch", "log_time", "file", "position")
_BEFORE_LOG: Final = ("valid_from_offset", "valid_from_time")


class RecordFile(Struct, frozen=True):
    """A file of the table `records`, of one type. Of a file that an earlier build wrote only the
    records of one leg from an offset on are wanted."""

    path: str  # below the table's folder
    cluster_id: str
    type: str
    rows: int
    leg: int | None = None
    from_offset: int | None = None


class OpenFile(Struct, frozen=True):
    """A file with rows of a history table that were open after the last build."""

    path: str  # below the table's folder
    cluster_id: str
    table: str


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
            row["base_offset"],
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
        chosen = self._rows.filter(pc.equal(self._rows.column("what"), _SAID))
        return chosen.select(exchange.SAID.names)


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
    with TablesOut(root) as out:
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
    wanted = pc.is_valid(rows.column("leg"))
    if file.leg is not None:
        here = pc.and_(
            pc.equal(rows.column("leg"), file.leg),
            pc.greater_equal(rows.column("offset"), file.from_offset),
        )
        wanted = pc.and_(here, pc.invert(rows.column("in_snapshot")))
    return rows.filter(wanted)


def _write_partitions(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    arounds: Mapping[str, Around],
    opened: Iterable[OpenFile],
    found: _Found,
) -> list[bytes]:
    frames = [
        *_record_frames(spark, root, records),
        *_opened_frames(spark, root, opened, arounds),
    ]
    if found.said.num_rows:
        frames.append(exchange.topics_said(spark, found.said))
    if not frames:
        return []
    known = spark.sparkContext.broadcast(dict(arounds))

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TablesOut(root) as out:
            partitions = Partitions(known.value, out)
            for batch in batches:
                partitions.take(batch)
            partitions.finish()
        yield pa.RecordBatch.from_arrays([pa.array(out.said(), pa.binary())], ["said"])

    rows = sum(file.rows for file in records if file.type in exchange.PARTITION_TYPES)
    tasks = max(spark.sparkContext.defaultParallelism, rows // _TASK_ROWS)
    with in_words(root):
        said = exchange.exchanged(frames, tasks).mapInArrow(write, "said binary").toArrow()
    known.unpersist()
    texts: list[bytes] = said.column(0).to_pylist()
    return texts


def _record_frames(
    spark: SparkSession, root: str, records: Iterable[RecordFile]
) -> Iterator[DataFrame]:
    from pyspark.sql import functions as F

    groups: dict[tuple[str, str | None, int | None, int | None], list[str]] = {}
    for file in records:
        if file.type in exchange.PARTITION_TYPES:
            cluster = None if file.leg is None else file.cluster_id
            key = file.type, cluster, file.leg, file.from_offset
            groups.setdefault(key, []).append(file.path)
    folder, columns = f"{root}/{records_table().name}", records_table().columns
    for (record_type, _, leg, first), paths in groups.items():
        wanted = [*_COMMON, struct_name(record_type)]
        schema = pa.schema([columns.field(name) for name in wanted])
        rows = read_files(spark, folder, paths, schema)
        assert rows is not None
        if leg is not None and first is not None:
            rows = rows.where((F.col("leg") == leg) & (F.col("offset") >= first))
            rows = rows.where(~F.col("in_snapshot"))
        yield exchange.records_said(rows, record_type)


_COMMON: Final = ("cluster_id", *_MOMENT)


def _opened_frames(
    spark: SparkSession, root: str, opened: Iterable[OpenFile], arounds: Mapping[str, Around]
) -> Iterator[DataFrame]:
    going_on = [
        {"cluster_id": name, "leg": leg}
        for name, around in arounds.items()
        for leg, known in around.legs.items()
        if known.leg.continued
    ]
    paths: dict[str, list[str]] = {}
    for file in opened:
        paths.setdefault(file.table, []).append(file.path)
    schema = pa.schema([exchange.SAID.field("cluster_id"), exchange.SAID.field("leg")])
    for table in ("partitions", "health"):
        if table not in paths or not going_on:
            continue
        rows = read_files(spark, f"{root}/{table}", paths[table], TABLES[table].columns)
        if rows is not None:
            legs = frame_of(spark, pa.Table.from_pylist(going_on, schema))
            yield exchange.opened_said(rows, legs, is_health=table == "health")

"""Everything but partitions, a cluster to a task, from the files of those types of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from kraftline.lake.files import open_for_reading
from kraftline.lake.tables import TABLES
from kraftline.metadata.loader.replay import without_collector
from kraftline.spark.history import exchange
from kraftline.spark.history.around import Around
from kraftline.spark.history.effects import CONTROLS, Logged
from kraftline.spark.history.exchange import OpenFile, RecordFile
from kraftline.spark.history.lives import Life
from kraftline.spark.history.moments import Leg, unit_of
from kraftline.spark.history.news import News, is_restless
from kraftline.spark.history.out import tables_out
from kraftline.spark.history.placed import LIFE, OVER_GAP
from kraftline.spark.history.rows import Rows
from kraftline.spark.history.things import OPENED, TYPES, Things
from kraftline.spark.record_table import file_schema, records_table, struct_name
from kraftline.spark.tasks import run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOUND: Final = pa.schema(
    [
        pa.field("what", pa.string()),
        *(exchange.ROWS.field(name) for name in ("cluster_id", "topic_id", "leg")),
        *(exchange.ROWS.field(name) for name in ("offset", "index", "how", "payload")),
        pa.field("topic", pa.string()),
    ]
)
_WROTE, _AROUND, _SAID, _LASTS = "wrote", "around", "said", "lasts"
_MOMENT: Final = ("leg", "offset", "index", "in_snapshot", "epoch", "log_time", "file", "position")
_BEFORE_LOG: Final = ("valid_from_offset", "valid_from_time")


class Found:
    """What the first step gave."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def wrote(self) -> list[bytes]:
        """The files that were written, for `added_by_table`."""
        return self._payloads(_WROTE)

    @cached_property
    def arounds(self) -> dict[str, Around]:
        """What partitions want to know of each cluster."""
        found = (msgspec.msgpack.decode(said, type=Around) for said in self._payloads(_AROUND))
        return {around.cluster_id: around for around in found}

    def _payloads(self, what: str) -> list[bytes]:
        chosen = self._rows.filter(pc.equal(self._rows.column("what"), what))
        found: list[bytes] = chosen.column("payload").to_pylist()
        return found

    def topics(self, news: News | None) -> pa.Table:
        """What is said of topics with news, or of all, as rows before those of their partitions."""
        what = self._rows.column("what")
        chosen = self._rows.filter(pc.is_in(what, pa.array([_SAID, _LASTS])))
        if news is not None:
            chosen = chosen.filter(pa.array(news.of_topics(chosen)))
        columns = {
            name: chosen.column(name) for name in _FOUND.names if name in exchange.ROWS.names
        }
        return exchange.shaped(
            {**columns, "partition": exchange.BEFORE_PARTITIONS}, chosen.num_rows
        )

    def covered_by(self, news: News) -> bool:
        """Whether these were all the news."""
        said = self._rows.filter(pc.equal(self._rows.column("what"), _SAID))
        restless = [name for name, around in self.arounds.items() if is_restless(around)]
        return news.covers(said, restless)


class _Share(Struct):
    """The work of one task: a cluster."""

    cluster_id: str
    legs: list[Leg]
    records: list[RecordFile]
    opened: list[OpenFile]

    @property
    def weight(self) -> int:
        return 1 + sum(file.rows for file in self.records)


def write_things(
    spark: SparkSession,
    root: str,
    records: Iterable[RecordFile],
    legs: Mapping[str, list[Leg]],
    opened: Iterable[OpenFile],
) -> Found:
    shares = {name: _Share(name, mine, [], []) for name, mine in legs.items()}
    for file in records:
        if file.type in TYPES:
            shares[file.cluster_id].records.append(file)
    for row in opened:
        if row.table in OPENED and row.cluster_id in shares:
            shares[row.cluster_id].opened.append(row)
    slots = spark.sparkContext.defaultParallelism
    work = shared_out(shares.values(), lambda share: share.weight, slots)
    return Found(run_tasks(spark, work, lambda mine: _things(mine, root), _FOUND))


def _things(shares: Sequence[_Share], root: str) -> Iterator[pa.RecordBatch]:
    said: list[dict[str, Any]] = []
    with without_collector(), tables_out(root) as out:
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
        opened = _opened(root, share.opened) if leg.continued else {}
        for table, found in opened.items():
            for place, row in enumerate(_as_dicts(found, table)):
                things.opened(table, row, place)
        things.replay(log.units(leg.leg))
        things.finish()
        for table, places in things.lasting.items():
            rows.again(table, opened[table].take(pa.array(places)), leg)
        around.legs[leg.leg] = things.around
        said += [_said(share.cluster_id, life.leg, LIFE, life) for life in things.lives]
        said += [_said(share.cluster_id, gap.leg, OVER_GAP, gap) for gap in things.over_gap]
        before = None if leg.next_base_offset is None else things
    return around, said


def _said(cluster_id: str, leg: int, how: int, said: Any) -> dict[str, Any]:
    is_life = isinstance(said, Life)
    return {
        "what": _LASTS if is_life and said.only_lasts else _SAID,
        "cluster_id": cluster_id,
        "topic_id": said.topic_id,
        "leg": leg,
        "offset": said.offset if is_life else 0,
        "index": said.index if is_life else 0,
        "how": how,
        "payload": msgspec.msgpack.encode(said),
        "topic": said.topic if is_life else said.topic_was or said.topic_now or "",
    }


def _opened(root: str, files: Iterable[OpenFile]) -> dict[str, pa.Table]:
    """The rows that were open, by table."""
    found: dict[str, list[pa.Table]] = {}
    for file in files:
        path = f"{root}/{file.table}/{file.path}"
        with open_for_reading(path) as source, pq.ParquetFile(source) as opened:
            for group in range(opened.num_row_groups):
                rows = opened.read_row_group(group)
                if file.table == "health":  # of partitions there are many, which go their own way
                    rows = rows.filter(pc.is_valid(rows.column("broker")))
                found.setdefault(file.table, []).append(rows)
    return {table: pa.concat_tables(parts) for table, parts in found.items()}


def _as_dicts(rows: pa.Table, table: str) -> Iterator[dict[str, Any]]:
    names = TABLES[table].columns.names
    wanted = [*names[1 : names.index(_BEFORE_LOG[0])], *_BEFORE_LOG]
    columns = [column.to_pylist() for column in _with_plain_times(rows.select(wanted)).columns]
    for values in zip(*columns, strict=True):
        yield dict(zip(wanted, values, strict=True))


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

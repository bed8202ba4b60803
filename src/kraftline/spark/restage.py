"""Records that the lake has already, read back: for a cluster that is built anew where its files
are gone, and for a transaction that was open when the last build ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kraftline.lake.delta import files_of
from kraftline.lake.files import Added, open_for_reading
from kraftline.lake.lake import Lake
from kraftline.lake.tables import TIME
from kraftline.spark.frames import frame_of, read_pinned
from kraftline.spark.history import RecordFile
from kraftline.spark.plan_types import LAKE, ClusterPlan, Piece
from kraftline.spark.record_table import file_schema, records_table
from kraftline.spark.sink import write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
ENDS: Final = ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")

_RANGES: Final = pa.schema(
    [
        pa.field("r_cluster", pa.string()),
        pa.field("r_leg", pa.int32()),
        pa.field("r_from", pa.int64()),
        pa.field("r_to", pa.int64()),
        pa.field("r_snapshot", pa.bool_()),
        pa.field("r_time", TIME),
        pa.field("r_committed", pa.int64()),
    ]
)


def restage(spark: SparkSession, lake: Lake, pieces: Sequence[Piece], folder: str) -> list[Added]:
    """Write again what pieces want of the lake's own records, with their legs and times of now."""
    from pyspark.sql import functions as F

    wanted = [piece for piece in pieces if piece.file == LAKE]
    clusters = sorted({piece.cluster_id for piece in wanted})
    table = records_table()
    rows = read_pinned(spark, lake, table, [{"cluster_id": clusters}]) if wanted else None
    if rows is None:
        return []
    ranges = frame_of(spark, pa.Table.from_pylist([_range(piece) for piece in wanted], _RANGES))
    inside = (
        (F.col("cluster_id") == F.col("r_cluster"))
        & (F.col("in_snapshot") == F.col("r_snapshot"))
        & (F.col("offset") >= F.col("r_from"))
        & (F.col("offset") < F.col("r_to"))
    )
    moved = rows.join(F.broadcast(ranges), inside).withColumns(
        {
            "leg": F.col("r_leg"),
            "log_time": F.greatest("log_time", "r_time"),
            "committed": F.col("in_snapshot") | (F.col("offset") < F.col("r_committed")),
        }
    )
    return write_rows(moved, table, folder, lambda values: file_schema(str(values[1])))


def _range(piece: Piece) -> dict[str, object]:
    return {
        "r_cluster": piece.cluster_id,
        "r_leg": piece.leg,
        "r_from": piece.from_offset,
        "r_to": piece.from_offset + 1 if piece.in_snapshot else piece.to_offset,
        "r_snapshot": piece.in_snapshot,
        "r_time": None if piece.time < 0 else piece.time * 1000,
        "r_committed": piece.committed_to,
    }


def waiting_records(
    lake: Lake, plans: Iterable[ClusterPlan], opened: Mapping[str, int]
) -> Iterator[RecordFile]:
    """Records of transactions that were open where the last build ended: they take effect, or
    not, with what is new. `opened` says where each began, by cluster."""
    for plan in plans:
        begin = opened.get(plan.cluster_id)
        leg = max((leg.leg for leg in plan.legs if leg.continued), default=None)
        if begin is None or plan.anew or leg is None:
            continue
        for file in files_of(lake.table(records_table().name)).values():
            if file.partition["cluster_id"] == plan.cluster_id:
                record_type = str(file.partition["type"])
                yield RecordFile(file.path, plan.cluster_id, record_type, 0, leg, begin)


def open_transaction(
    plan: ClusterPlan, added: Iterable[Added], folder: str, opened: int | None
) -> int | None:
    """The offset of the Begin of a transaction that is open at the end of the last leg. `opened`
    is the one that was open before what was added."""
    if not plan.legs:
        return None
    last = plan.legs[-1]
    if not last.continued:
        opened = None
    mine = [each for each in added if each.partition["cluster_id"] == plan.cluster_id]
    ends = _offsets(mine, ENDS, folder, last.leg)
    ended = max(ends, default=-1)
    begins = [at for at in _offsets(mine, (BEGIN,), folder, last.leg) if at > ended]
    if opened is not None and not ends:
        return opened
    return min(begins, default=None)


def _offsets(added: Iterable[Added], types: Sequence[str], folder: str, leg: int) -> list[int]:
    found: list[int] = []
    for each in added:
        if each.partition["type"] in types:
            rows = _read(f"{folder}/{each.path}")
            found += rows.filter(pa.compute.field("leg") == leg).column("offset").to_pylist()
    return found


def _read(path: str) -> pa.Table:
    with open_for_reading(path) as source, pq.ParquetFile(source) as file:
        return file.read(["leg", "offset"])

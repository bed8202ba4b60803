"""Topics that grow fastest: what their segments gained in the window."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.report.tables import micros
from kraftline.report.window import SECOND, Window

_MOST = 15


class Growth(Struct, frozen=True):
    """A topic, counted once however many nodes hold copies of it."""

    topic: str
    partitions: int
    gained_bytes: int
    gained_records: int
    bytes: int
    records: int

    def per_second(self, window: Window) -> float:
        return self.gained_bytes * SECOND / max(window.length, SECOND)


class Topics(Struct, frozen=True):
    growing: list[Growth]
    left_out: int
    total: int


def topics(sizes: pa.Table, window: Window) -> Topics:
    rows = _one_copy(sizes)
    first, last = micros(rows["first_time"]), micros(rows["last_time"])
    # A segment that reaches into the window counts with the part of its time that is inside.
    inside = pc.subtract(
        pc.min_element_wise(last, window.end), pc.max_element_wise(first, window.start)
    )
    share = pc.if_else(
        pc.less(inside, 0),
        0.0,
        pc.divide(
            pc.cast(pc.add(inside, 1), "double"),
            pc.cast(pc.add(pc.subtract(last, first), 1), "double"),
        ),
    )
    share = pc.fill_null(share, 0.0)
    rows = rows.append_column("gained_bytes", pc.multiply(pc.cast(rows["bytes"], "double"), share))
    rows = rows.append_column(
        "gained_records", pc.multiply(pc.cast(rows["records"], "double"), share)
    )
    grouped = rows.group_by("topic").aggregate(
        [
            ("partition", "count_distinct"),
            ("gained_bytes", "sum"),
            ("gained_records", "sum"),
            ("bytes", "sum"),
            ("records", "sum"),
        ]
    )
    ranked = grouped.sort_by([("gained_bytes_sum", "descending"), ("topic", "ascending")])
    growing = [
        Growth(
            topic=row["topic"],
            partitions=row["partition_count_distinct"],
            gained_bytes=round(row["gained_bytes_sum"]),
            gained_records=round(row["gained_records_sum"]),
            bytes=row["bytes_sum"],
            records=row["records_sum"],
        )
        for row in ranked.slice(0, _MOST).to_pylist()
        if row["gained_bytes_sum"] > 0
    ]
    return Topics(growing, max(0, grouped.num_rows - len(growing)), grouped.num_rows)


def _one_copy(sizes: pa.Table) -> pa.Table:
    """The segments of that node, for each partition, whose copy reaches furthest."""
    ends = sizes.group_by(["topic", "partition", "node"]).aggregate(
        [("end_offset", "max"), ("bytes", "sum")]
    )
    ends = ends.sort_by(
        [("end_offset_max", "descending"), ("bytes_sum", "descending"), ("node", "ascending")]
    )
    best = ends.group_by(["topic", "partition"], use_threads=False).aggregate([("node", "first")])
    best = best.rename_columns(["topic", "partition", "node"])
    keys = ["topic", "partition", "node"]
    # Rows without a node (a directory that does not say whose it is) match nothing in a join.
    filled = sizes.set_column(sizes.schema.get_field_index("node"), "node", _known(sizes["node"]))
    best = best.set_column(2, "node", _known(best["node"]))
    return filled.join(best, keys, join_type="inner")


def _known(nodes: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(nodes, -1)

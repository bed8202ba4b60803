"""A plan for readers, as the tables `coverage` and `quarantine`; and its legs for a replay."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import pyarrow as pa
from msgspec.structs import asdict, replace

from kraftline.lake.lake import Lake
from kraftline.lake.tables import COVERAGE, QUARANTINE, TIME
from kraftline.spark.inputs import InputFile
from kraftline.spark.plan_types import ClusterPlan, Quarantined

LEGS: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("leg", pa.int32()),
        pa.field("base_offset", pa.int64()),
        pa.field("base_time", TIME),
        pa.field("next_base_offset", pa.int64()),
        pa.field("next_base_time", TIME),
        pa.field("end_offset", pa.int64()),
        pa.field("end_time", TIME),
        pa.field("committed_to", pa.int64()),
        pa.field("continued", pa.bool_()),
    ]
)
# What tasks find in records that they decode; everything else a plan tells again.
_FOUND_IN_RECORDS: Final = ("unknown", "unreadable")


def leg_rows(plans: Iterable[ClusterPlan]) -> pa.Table:
    """The legs that a build makes history of: those that are new, and the one that goes on."""
    rows = []
    for plan in plans:
        known = [leg.leg for leg in plan.legs if leg.continued]
        first = known[-1] if known else 0
        for number in range(first, len(plan.legs)):
            leg = plan.legs[number]
            after = plan.legs[number + 1] if number + 1 < len(plan.legs) else None
            rows.append(
                {
                    "cluster_id": plan.cluster_id,
                    "leg": number,
                    "base_offset": leg.base_offset,
                    "base_time": _time(leg.base_time),
                    "next_base_offset": None if after is None else after.base_offset,
                    "next_base_time": None if after is None else _time(after.base_time),
                    "end_offset": leg.end_offset,
                    "end_time": _time(leg.end_time),
                    "committed_to": plan.committed_to,
                    "continued": leg.continued,
                }
            )
    return pa.Table.from_pylist(rows, LEGS)


def coverage_rows(plan: ClusterPlan) -> pa.Table:
    rows = [
        {
            **asdict(row),
            "cluster_id": plan.cluster_id,
            "from_time": _time(row.from_time),
            "to_time": _time(row.to_time),
            "committed_to": plan.committed_to,
        }
        for row in plan.coverage
    ]
    return pa.Table.from_pylist(rows, COVERAGE.columns)


def quarantine_rows(cluster_id: str, rows: Iterable[Quarantined]) -> pa.Table:
    said = [{"cluster_id": cluster_id, **asdict(row)} for row in rows]
    return pa.Table.from_pylist(said, QUARANTINE.columns)


def quarantined_before(lake: Lake | None) -> dict[str, list[Quarantined]]:
    """What the lake's build has in quarantine, by cluster: few enough rows for the driver."""
    found: dict[str, list[Quarantined]] = {}
    if lake is not None and QUARANTINE.name in lake.build.versions:
        for row in lake.dataset(QUARANTINE.name).to_pylist():
            found.setdefault(row.pop("cluster_id"), []).append(Quarantined(**row))
    return found


def all_quarantined(
    before: Sequence[Quarantined],
    plan: ClusterPlan,
    staged: Sequence[Quarantined],
    present: frozenset[str],
) -> list[Quarantined]:
    """What is in quarantine after a build. Of files that are there, the plan says anew what is
    wrong with them; what was found in records stays, as do files that are gone."""
    kept = [
        row
        for row in before
        if row.file not in present or (row.kind in _FOUND_IN_RECORDS and not plan.anew)
    ]
    return list(dict.fromkeys([*kept, *plan.quarantine, *staged]))


def told(plan: ClusterPlan) -> str:
    """A plan's words on gaps, damage and what is committed, summed up to compare."""
    said = (
        sorted(plan.quarantine, key=lambda row: (row.file, row.from_position or 0)),
        [replace(row, source=None) for row in plan.coverage],
        plan.committed_to,
    )
    return _digest(said)


def summed_up(files: Iterable[InputFile]) -> str:
    """Files and their states, to compare."""
    return _digest(sorted((file.path, file.size, file.modified) for file in files))


def _digest(said: object) -> str:
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:16]


def _time(ms: int) -> int | None:
    return None if ms < 0 else ms * 1000

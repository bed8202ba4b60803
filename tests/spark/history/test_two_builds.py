"""History that is built in two steps is the same as when it is built in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.history.staging import Part, Tables, build


@pytest.mark.soak
def test_two_builds_are_one(
    spark: SparkSession, generated: list[Part], built: dict[str, Tables], tmp_path: Path
) -> None:
    """Each log is cut behind another batch, some of them inside a transaction or at a gap."""
    cuts = {part.cluster_id: _cut(number, part) for number, part in enumerate(generated)}
    early = [part._replace(last=cuts[part.cluster_id]) for part in generated]
    first = build(spark, early, tmp_path / "first")
    late = [_rest(part, cuts[part.cluster_id]) for part in generated]
    second = build(spark, late, tmp_path / "second", first)
    for part in generated:
        for name, whole in built[part.cluster_id].items():
            done = [row for row in first[part.cluster_id][name] if row.get("state") != "open"]
            found = [*done, *second[part.cluster_id][name]]
            assert _texts(found) == _texts(whole), (part.cluster_id, cuts[part.cluster_id], name)


def _cut(number: int, part: Part) -> int:
    ends = [batch.last_offset + 1 for leg in part.history.legs for batch in leg.batches]
    if number % 2:  # a little news, so that most partitions have none
        return ends[-2 - number // 2 % min(5, len(ends) - 1)]
    return ends[(number * 7 + 5) % (len(ends) - 1)]


def _rest(part: Part, cut: int) -> Part:
    """What is behind a cut, from the Begin of a transaction that is open there."""
    for leg in part.history.legs:
        if leg.batches and leg.first_offset < cut <= leg.last_offset:
            _, first = part.history.resume(leg, cut)
            return part._replace(first=first, done=cut)
    return part._replace(first=cut, done=cut)


def _texts(rows: list[dict[str, object]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)

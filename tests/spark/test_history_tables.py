"""History tables as of an offset are the image at that offset."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from tests.fixture_files import FIXTURES
from tests.spark.images import NAMES, as_of, check_rows, in_order, rows_of
from tests.spark.staging import Part, Tables, build, part_of

LOGS = sorted(FIXTURES.glob("*/data/*/__cluster_metadata-0"))


@pytest.fixture(scope="module")
def fixtures(spark: SparkSession) -> list[tuple[Part, Tables]]:
    parts = [part_of(f"{path.parts[-4]}/{path.parts[-2]}", path) for path in LOGS]
    built = build(spark, parts)
    return [(part, built[part.cluster_id]) for part in parts]


def test_tables_are_the_image_after_every_batch(fixtures: list[tuple[Part, Tables]]) -> None:
    for part, tables in fixtures:
        check_rows(tables)
        for leg in part.history.legs:
            compare(part, tables, (batch.last_offset for batch in leg.batches))


def compare(part: Part, tables: Tables, offsets: Iterable[int]) -> None:
    for leg in part.history.legs:
        wanted = sorted({at for at in offsets if leg.first_offset <= at <= leg.last_offset})
        if not wanted:
            continue
        for offset, image in zip(wanted, part.history.in_order(leg, wanted), strict=True):
            expected = rows_of(image)
            for name in NAMES:
                found = in_order(as_of(tables, name, offset))
                assert found == in_order(expected[name]), (part.cluster_id, offset, name)

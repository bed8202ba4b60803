"""All logs of these tests, and their history: made in one go, since a Spark job has its price."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.effort import rounds
from tests.fixture_files import FIXTURES
from tests.spark.history.random_logs import make_log, make_log_with_gap, make_odd_log
from tests.spark.history.staging import Part, Tables, build, part_of


@pytest.fixture(scope="session")
def fixtures() -> list[Part]:
    """Logs that Kafka wrote."""
    paths = sorted(FIXTURES.glob("*/data/*/__cluster_metadata-0"))
    return [part_of(f"{path.parts[-4]}/{path.parts[-2]}", path) for path in paths]


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> list[Part]:
    """Logs made at random, some with a gap, some with what no controller writes."""
    root = tmp_path_factory.mktemp("logs")
    makers = ((make_log, rounds(24)), (make_log_with_gap, rounds(12)), (make_odd_log, rounds(4)))
    return [
        part_of(name, make(root / name, number))
        for make, count in makers
        for number in range(count)
        for name in [f"{make.__name__} {number}"]
    ]


@pytest.fixture(scope="session")
def built(
    spark: SparkSession,
    fixtures: list[Part],
    generated: list[Part],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Tables]:
    """The tables of every log by its cluster."""
    return build(spark, [*fixtures, *generated], tmp_path_factory.mktemp("built"))

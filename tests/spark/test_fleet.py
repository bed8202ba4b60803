"""Many clusters in one run: each as if it were alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from kraftline.lake.lake import Lake
from kraftline.spark.build import build
from tests.fixture_files import FIXTURES

SOURCES = (
    "metadata_4_3/data/node-1",
    "metadata_3_9/data",
    "metadata_3_3/data",
    "eventful_day/data/node-1",
)
CLUSTERS = 50


@pytest.mark.soak
def test_fifty_clusters_are_built_in_one_run(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(CLUSTERS):
        _copy(FIXTURES / SOURCES[number % len(SOURCES)], tmp_path / "fleet" / f"{number}", number)
    outcome = build(spark, [str(tmp_path / "fleet" / "*")], str(tmp_path / "lake"))
    assert len(outcome.clusters) == CLUSTERS
    lake = Lake.at(str(tmp_path / "lake"))
    for name in ("topics", "partitions", "brokers", "configs", "changes"):
        table = lake.dataset(name)
        counts = {
            each["values"].as_py(): each["counts"].as_py()
            for each in pc.value_counts(table["cluster_id"])
        }
        assert len(counts) == CLUSTERS, name
        for number in range(CLUSTERS):
            assert counts[f"cluster-{number}"] == counts[f"cluster-{number % len(SOURCES)}"], name


def _copy(source: Path, to: Path, number: int) -> None:
    """The metadata of one node, as that of a cluster with another id."""
    log = next(path for path in sorted(source.rglob("__cluster_metadata-0")) if path.is_dir())
    shutil.copytree(log, to / log.name)
    properties = (log.parent / "meta.properties").read_text().splitlines()
    kept = [line for line in properties if not line.startswith("cluster.id=")]
    (to / "meta.properties").write_text("\n".join([*kept, f"cluster.id=cluster-{number}", ""]))

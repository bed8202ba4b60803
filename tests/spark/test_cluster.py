"""The same build on a real Spark cluster gives the same lake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kraftline.lake.lake import Lake
from kraftline.lake.tables import TABLES
from kraftline.spark.build import build
from tests.fixture_files import FIXTURES
from tests.spark.standalone import standalone

DAY = FIXTURES / "eventful_day" / "data"


def rows_of(lake: Path) -> dict[str, list[str]]:
    """Every row of every table, in some order that is always the same."""
    found = Lake.at(str(lake))
    return {name: _sorted(found.dataset(name)) for name in TABLES if name in found.build.versions}


def _sorted(table: pa.Table) -> list[str]:
    names = sorted(table.column_names)
    return sorted(repr([row[name] for name in names]) for row in table.to_pylist())


@pytest.mark.soak
def test_master_and_workers_of_their_own_build_the_same_lake(
    spark: SparkSession, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    with standalone(tmp_path / "cluster") as master:
        build(spark, [str(DAY)], str(here))
        command = ["-m", "kraftline", "history", "build", "--master", master]
        command += ["--from", str(DAY), "--to", str(there)]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert rows_of(there) == rows_of(here)

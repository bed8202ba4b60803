"""The same build on a real Spark cluster gives the same lake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
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
    return {name: _sorted(found.dataset(name).to_table()) for name in TABLES}


def _sorted(table: pa.Table) -> list[str]:
    names = sorted(table.column_names)
    return sorted(repr([row[name] for name in names]) for row in table.to_pylist())


def test_master_and_workers_of_their_own_build_the_same_lake(
    spark: SparkSession, tmp_path: Path
) -> None:
    build(spark, [str(DAY)], str(tmp_path / "here"))
    with standalone(tmp_path / "cluster") as master:
        command = [sys.executable, "-m", "kraftline", "history", "build", "--master", master]
        command += ["--from", str(DAY), "--to", str(tmp_path / "there")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert rows_of(tmp_path / "there") == rows_of(tmp_path / "here")

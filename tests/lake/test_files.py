"""What is told to Delta of a file is true, so that others read the tables as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from kraftline.lake.files import ROW_GROUP, normal, partition_folder, write_file
from kraftline.lake.lake import Lake
from kraftline.lake.tables import TABLES, TIME
from tests.lake.lakes import covered, span, write_lake


def stats(tmp_path: Path, **columns: Any) -> dict[str, Any]:
    said = write_file(str(tmp_path), pa.table(columns), {}).stats
    assert said is not None
    found: dict[str, Any] = json.loads(said)
    return found


def test_bounds_and_nulls_of_plain_columns(tmp_path: Path) -> None:
    found = stats(
        tmp_path,
        number=[3, None, -1],
        text=["b", "a", None],
        time=pa.array([0, 1_234_000, None], TIME),
        nothing=pa.array([None, None, None], pa.int64()),
        many=[[1], [2], []],
        flag=[True, False, True],
    )
    assert found["numRecords"] == 3
    assert found["minValues"] == {
        "number": -1,
        "text": "a",
        "time": "1970-01-01T00:00:00.000000Z",
    }
    assert found["maxValues"] == {
        "number": 3,
        "text": "b",
        "time": "1970-01-01T00:00:01.234000Z",
    }
    assert found["nullCount"] == {"number": 1, "text": 1, "time": 1, "nothing": 3, "flag": 0}


def test_bounds_over_row_groups(tmp_path: Path) -> None:
    found = stats(
        tmp_path, x=range(3 * ROW_GROUP), y=pa.array([None] * 2 * ROW_GROUP + [7] * ROW_GROUP)
    )
    assert found["minValues"] == {"x": 0, "y": 7}
    assert found["maxValues"] == {"x": 3 * ROW_GROUP - 1, "y": 7}


def test_long_texts_and_odd_numbers_have_no_bounds(tmp_path: Path) -> None:
    found = stats(tmp_path, text=["x" * 100, "a"], number=[float("inf"), 1.0])
    assert found["minValues"] == {}
    assert found["nullCount"] == {"text": 0, "number": 0}


def test_partition_folders_are_escaped() -> None:
    folder = partition_folder({"cluster_id": "a/b c%", "state": None})
    assert folder == "cluster_id=a%2Fb%20c%25/state=__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize("cluster", ["A", "prod/eu 100% ü", "..", "a=b"])
def test_a_cluster_may_have_any_name(tmp_path: Path, cluster: str) -> None:
    write_lake(tmp_path, {"coverage": [covered(cluster, 0, 9)]})
    write_lake(tmp_path, {"coverage": [covered(cluster, 0, 19)]})
    rows = Lake.at(str(tmp_path)).dataset("coverage").to_pylist()
    assert [(row["cluster_id"], row["to_offset"]) for row in rows] == [(cluster, 20)]


def test_other_readers_prune_by_what_was_told(tmp_path: Path) -> None:
    """pyarrow takes the bounds for truth and skips files by them."""
    rows = [
        {"cluster_id": "A", "topic": f"t{n}", "topic_id": f"id{n}", **span(n, n + 5)}
        for n in range(40)
    ]
    for at in range(0, 40, 10):
        write_lake(tmp_path, {"topics": rows[at : at + 10]}, replace=False)
    dataset = Lake.at(str(tmp_path)).table("topics").to_pyarrow_dataset()
    first, last = ds.field("valid_from_offset"), ds.field("valid_to_offset")
    found = dataset.to_table(filter=(first <= 20) & (last.is_null() | (last > 20)))
    assert sorted(found["valid_from_offset"].to_pylist()) == [16, 17, 18, 19, 20]


def test_roots_are_paths_or_urls() -> None:
    assert normal("file:///data/lake") == "/data/lake"
    assert normal("s3://bucket/lake/") == "s3://bucket/lake"
    assert normal("lake").startswith("/")


def test_rows_come_in_the_types_of_their_table(tmp_path: Path) -> None:
    write_lake(tmp_path, {"coverage": [covered("A", 0, 9)]})
    lake = Lake.at(str(tmp_path))
    for name, table in TABLES.items():
        assert lake.dataset(name).schema == table.columns

"""What a survey finds in files, runs by epoch, damage, tails; and what it need not read again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftline.spark.inputs import InputFile, find_inputs, of_clusters
from kraftline.spark.survey import DAMAGE, RUN, Known, SurveyRow, survey, survey_again
from kraftline.spark.survey_rows import END, SNAPSHOT
from tests.fixture_files import FIXTURES, records
from tests.spark.building import batch, topic, topics_log, write_log

Surveyed = dict[str, list[SurveyRow]]


def files_of(*paths: Path) -> list[InputFile]:
    return of_clusters(find_inputs(map(str, paths)), "c")


def known_from(files: list[InputFile], rows: Surveyed) -> dict[str, Known]:
    return {f.path: Known(f.size, f.modified, tuple(rows[f.path])) for f in files}


def runs(rows: list[SurveyRow]) -> list[tuple[int, int | None, int | None]]:
    return [(row.epoch, row.from_offset, row.to_offset) for row in rows if row.what == RUN]


def test_every_record_of_real_logs_is_in_one_run(spark: SparkSession) -> None:
    names = ("metadata_3_3", "metadata_3_9", "metadata_4_3", "upgraded_4_3")
    files = files_of(*(FIXTURES / name / "data" for name in names))
    for path, rows in survey(spark, files, {}).items():
        if "__cluster_metadata" not in path or not path.endswith(".log"):
            continue
        kafkas = list(records(Path(path)))
        assert sum(row.records for row in rows) == len(kafkas), path
        for row in rows:
            inside = [
                each for each in kafkas if row.from_position <= each["position"] < row.to_position
            ]
            if row.what == RUN:
                assert {each["partitionLeaderEpoch"] for each in inside} == {row.epoch}
                assert max(each["maxTimestamp"] for each in inside) == row.max_time
                assert (inside[0]["offset"], inside[-1]["offset"] + 1) == (
                    row.from_offset,
                    row.to_offset,
                )


def test_snapshots_say_up_to_where_they_tell(spark: SparkSession) -> None:
    files = files_of(FIXTURES / "metadata_4_3" / "data" / "node-1" / "__cluster_metadata-0")
    rows = survey(spark, files, {})
    found = [row for each in rows.values() for row in each if row.what == SNAPSHOT]
    assert [(row.to_offset, row.epoch) for row in found] == [(0, 0), (98, 1), (138, 1), (188, 1)]


@pytest.mark.parametrize("split", [1000, 5000, 1 << 30])
def test_a_file_in_parts_is_surveyed_as_one(
    spark: SparkSession, tmp_path: Path, split: int
) -> None:
    write_log(tmp_path, topics_log(0, 60), topics_log(60, 60, epoch=2))
    [rows] = survey(spark, files_of(tmp_path), {}, split=split).values()
    joined = runs(rows)
    assert joined[0][1] == 0
    assert joined[-1][2] == 120
    assert all(a[2] == b[1] for a, b in pairwise(joined))
    assert {run[0] for run in joined} == {1, 2}
    assert sum(row.records for row in rows) == 120


def test_a_damaged_batch_is_a_row_with_its_offsets(spark: SparkSession, tmp_path: Path) -> None:
    size = len(batch(0, topic("t0")))
    file = write_log(tmp_path, topics_log(0, 9))
    data = bytearray(file.read_bytes())
    data[4 * size + 70] ^= 1
    file.write_bytes(data)
    [rows] = survey(spark, files_of(tmp_path), {}).values()
    [bad] = [row for row in rows if row.what == DAMAGE]
    assert (bad.from_position, bad.to_position) == (4 * size, 5 * size)
    assert (bad.from_offset, bad.to_offset) == (4, 5)
    assert "checksum" in str(bad.reason)
    assert runs(rows) == [(1, 0, 4), (1, 5, 9)]


@pytest.mark.parametrize("cut", [1, 20, 80])
def test_a_half_written_last_batch_is_not_there_yet(
    spark: SparkSession, tmp_path: Path, cut: int
) -> None:
    file = write_log(tmp_path, topics_log(0, 9))
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    [rows] = survey(spark, files_of(tmp_path), {}).values()
    assert runs(rows) == [(1, 0, 8)]
    assert [row.what for row in rows] == [RUN, END]


def test_a_segment_with_another_after_it_must_not_end_within_a_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_log(tmp_path, topics_log(0, 9))
    file.write_bytes(file.read_bytes()[:-10])
    write_log(tmp_path, topics_log(9, 3), base=9)
    rows = survey(spark, files_of(tmp_path), {})[str(file)]
    [bad] = [row for row in rows if row.what == DAMAGE]
    assert bad.from_offset == 8


def test_what_did_not_change_is_not_read_again(spark: SparkSession, tmp_path: Path) -> None:
    file = write_log(tmp_path, topics_log(0, 9))
    files = files_of(tmp_path)
    known = known_from(files, survey(spark, files, {}))
    file.unlink()  # whoever reads it now would fail
    assert survey(spark, files, known) == {str(file): list(known[str(file)].rows)}


def test_a_file_that_grew_is_read_from_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    file = write_log(tmp_path, topics_log(0, 9))
    files = files_of(tmp_path)
    known = known_from(files, survey(spark, files, {}))
    # What was surveyed is destroyed, except for its last batch: nobody looks there.
    size = len(batch(0, topic("t0")))
    file.write_bytes(bytes(8 * size) + file.read_bytes()[8 * size :] + topics_log(9, 5, epoch=3))
    [rows] = survey(spark, files_of(tmp_path), known).values()
    assert runs(rows) == [(1, 0, 9), (3, 9, 14)]


def test_a_file_that_lost_its_tail_and_grew_again_is_read_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_log(tmp_path, topics_log(0, 9))
    files = files_of(tmp_path)
    known = known_from(files, survey(spark, files, {}))
    file.write_bytes(topics_log(0, 6) + topics_log(6, 9, epoch=2))
    [rows] = survey(spark, files_of(tmp_path), known).values()
    assert runs(rows) == [(1, 0, 6), (2, 6, 15)]


def test_runs_are_cut_at_offsets_where_batches_begin(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path, topics_log(0, 4), batch(4, topic("a"), topic("b")), topics_log(6, 4))
    files = files_of(tmp_path)
    [rows] = survey(spark, files, {}).values()
    [run] = [row for row in rows if row.what == RUN]
    found = survey_again(spark, {f.path: f for f in files}, {run: (2, 5, 6)})
    assert runs(found[run]) == [(1, 0, 2), (1, 2, 6), (1, 6, 10)]


def test_files_elsewhere_are_surveyed_alike(spark: SparkSession, tmp_path: Path) -> None:
    import zipfile

    file = write_log(tmp_path / "node", topics_log(0, 9))
    with zipfile.ZipFile(tmp_path / "node.zip", "w") as packed:
        packed.write(file, "__cluster_metadata-0/00000000000000000000.log")
    url = f"zip://__cluster_metadata-0::{tmp_path / 'node.zip'}"
    [rows] = survey(spark, of_clusters(find_inputs([url]), "c"), {}).values()
    assert runs(rows) == [(1, 0, 9)]

"""The history tables of a build, in two steps of tasks: things first, then partitions, which want
to know of things. Beside the first, open rows of partitions that nothing happened to are passed on.
Tasks write the files of tables themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import inheritable_thread_target

from kraftline.lake.files import Added
from kraftline.spark.history.exchange import OpenFile, RecordFile
from kraftline.spark.history.moments import Leg
from kraftline.spark.history.out import added_by_table
from kraftline.spark.history.partition_tasks import (
    NOTHING_PASSED,
    Passed,
    Passing,
    pass_on,
    passing,
    write_partitions,
)
from kraftline.spark.history.thing_tasks import write_things
from kraftline.spark.history.things import OPENED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_history(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: pa.Table,
    opened: Sequence[OpenFile] = (),
    heard: pa.Table | None = None,
) -> dict[str, list[Added]]:
    """Write every history table, `health` and `changes` for the clusters in `legs`; the files of
    each, which nobody sees yet.

    `records` are newly staged; of a leg that goes on they must begin with the Begin of a
    transaction that was open when it was built last. `opened` rows come out again, closed or still
    open. `heard` are the news in what was staged, where these were listened for.
    """
    by_cluster = _legs(legs)
    by = passing(spark, root, records, by_cluster, opened, heard)
    with _ahead(spark, root, records, by_cluster, opened, by) as passed:
        found = write_things(spark, root, records, by_cluster, opened)
        added = added_by_table(found.wrote)
        written = write_partitions(spark, root, records, by_cluster, opened, found, by, passed)
    for table, files in added_by_table(written).items():
        added.setdefault(table, []).extend(files)
    return {name: added.get(name, []) for name in (*OPENED, "partitions", "changes")}


@contextmanager
def _ahead(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    legs: Mapping[str, Sequence[Leg]],
    opened: Sequence[OpenFile],
    by: Passing | None,
) -> Iterator[Callable[[], Passed]]:
    """Pass rows on while others are at work: the things of a cluster are one task, which leaves
    most of a machine idle."""
    if by is None:
        yield lambda: NOTHING_PASSED
        return
    pool = ThreadPoolExecutor(1)
    try:
        # With the tags of this thread's jobs, by which they are cancelled.
        begin = inheritable_thread_target(spark)(pass_on)
        passed: Future[Passed] = pool.submit(begin, spark, root, records, legs, opened, by)
        yield passed.result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _legs(legs: pa.Table) -> dict[str, list[Leg]]:
    found: dict[str, list[Leg]] = {}
    times = legs.column("next_base_time").cast(pa.int64()).to_pylist()
    for row, time in zip(legs.to_pylist(), times, strict=True):
        leg = Leg(
            row["leg"],
            row["next_base_offset"],
            time,
            row["end_offset"],
            row["committed_to"],
            row["continued"],
        )
        found.setdefault(row["cluster_id"], []).append(leg)
    return {name: sorted(each, key=lambda leg: leg.leg) for name, each in found.items()}

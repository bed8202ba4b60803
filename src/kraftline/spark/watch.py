"""Keep a lake up to date: a stream that ticks when inputs change, and a build for every tick.

The lake itself knows how far it has come, so nothing depends on the stream's checkpoint.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from kraftline.errors import KraftlineError
from kraftline.spark.build import Outcome, Progress, build
from kraftline.spark.inputs import find_inputs
from kraftline.spark.plan_tables import summed_up
from kraftline.spark.tasks import in_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A segment may go, or be cut, between two looks at a live directory.
_TRIES: Final = 3


class Ticks(DataSource):
    """A row whenever a file behind the `paths` (one a line) has changed, come or gone."""

    @classmethod
    def name(cls) -> str:
        return "kraftline_ticks"

    def schema(self) -> str:
        return "state string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return _TickReader(self.options["paths"].split("\n"))


class _TickReader(DataSourceStreamReader):
    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def initialOffset(self) -> dict[str, str]:
        return {"state": ""}

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        return {"state": summed_up(find_inputs(self._paths))}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        return [InputPartition(end["state"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"state": [partition.value]})


def watch(
    spark: SparkSession,
    inputs: Sequence[str],
    lake_root: str,
    *,
    cluster_id: str | None = None,
    progress: Progress = lambda step: None,
    built: Callable[[Outcome], None] = lambda outcome: None,
    seconds: float = 5.0,
    rounds: int | None = None,
) -> None:
    """Build now, and again whenever inputs change, looking every so many seconds; without an end,
    or until there were so many `rounds`. KraftlineError where that cannot go on."""
    spark.dataSource.register(Ticks)
    done = 0

    def tick(_: DataFrame, number: int) -> None:
        nonlocal done
        for attempt in range(1, _TRIES + 1):
            try:
                outcome = build(
                    spark,
                    inputs,
                    lake_root,
                    cluster_id=cluster_id,
                    progress=progress,
                )
                break
            except KraftlineError:
                if attempt == _TRIES:
                    raise
                time.sleep(seconds)
        built(outcome)
        done += 1

    find_inputs(inputs)  # a wrong path is told before anything starts
    ticks = spark.readStream.format(Ticks.name()).option("paths", "\n".join(inputs)).load()
    with tempfile.TemporaryDirectory(prefix="kraftline-watch-") as checkpoint:
        query = (
            ticks.writeStream.foreachBatch(tick)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=f"{seconds} seconds")
            .start()
        )
        try:
            with in_words():
                while rounds is None or done < rounds:
                    if query.awaitTermination(1):
                        break
        finally:
            query.stop()

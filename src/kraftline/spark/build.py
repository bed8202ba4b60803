"""One build of a lake: from files to committed tables, all visible at once or not at all.

Only what is new is read where the plan extends what the lake has; a cluster whose plan does not is
made again from all there is. A run without news commits nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from kraftline.lake.commit import Writing, writing_to
from kraftline.lake.delta import files_of
from kraftline.lake.files import Added, write_file
from kraftline.lake.lake import Lake
from kraftline.lake.tables import (
    COVERAGE,
    GROUP_OFFSETS,
    GROUPS,
    HEALTH,
    HISTORY,
    OPEN,
    QUARANTINE,
    TABLES,
    TOPIC_SIZES,
    Table,
)
from kraftline.spark import register
from kraftline.spark.file_table import FILES, file_rows, known_files
from kraftline.spark.frames import read_pinned
from kraftline.spark.history import OpenFile, RecordFile, write_history
from kraftline.spark.inputs import InputFile, find_inputs, of_clusters, places_of
from kraftline.spark.plan import plan_cluster
from kraftline.spark.plan_tables import (
    all_quarantined,
    coverage_rows,
    leg_rows,
    quarantine_rows,
    quarantined_before,
    summed_up,
    told,
)
from kraftline.spark.plan_types import LAKE, ClusterPlan, Quarantined
from kraftline.spark.reached import Reached
from kraftline.spark.record_table import PARTITIONED_BY, records_table
from kraftline.spark.restage import open_transaction, restage, waiting_records
from kraftline.spark.sink import write_rows
from kraftline.spark.stage import Staged, stage
from kraftline.spark.survey import survey, survey_again
from kraftline.spark.survey_rows import SurveyRow
from kraftline.spark.topics import NOTHING_KNOWN, TopicsKnown, topic_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Tables that are written at the same time: small ones would leave the machine idle.
_SIDE_BY_SIDE: Final = 4
_TAG: Final = "kraftline-build"
_SHUFFLE_ROWS: Final = 500_000
_FEW_ROWS: Final = 50_000


class Step(Struct, frozen=True):
    """Part of a build, told when it begins (`seconds` is None) and when it is done."""

    name: str
    rows: int = 0
    seconds: float | None = None


Progress: TypeAlias = Callable[[Step], None]


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run came to. `build` is None where there was nothing new.

    `records` were read, `rows` are what was written by table; `quarantined` is what this run found
    that it could not read, or that lost a conflict.
    """

    build: int | None
    clusters: tuple[str, ...]
    anew: tuple[str, ...] = ()
    records: int = 0
    rows: dict[str, int] = {}
    quarantined: tuple[Quarantined, ...] = ()
    seconds: float = 0.0


def build(
    spark: SparkSession,
    inputs: Sequence[str],
    lake_root: str,
    *,
    cluster_id: str | None = None,
    progress: Progress = lambda step: None,
) -> Outcome:
    """Bring the lake up to what the inputs hold. Whatever stops this leaves it as it was."""
    started = time.monotonic()
    register(spark)
    files = of_clusters(find_inputs(inputs), cluster_id)
    with writing_to(lake_root) as writing, _stoppable(spark):
        run = _Run(spark, writing, files, progress)
        outcome = run.build(inputs)
    return replace(outcome, seconds=time.monotonic() - started)


@contextmanager
def _stoppable(spark: SparkSession) -> Iterator[None]:
    """Leave no job behind that would go on writing when this is stopped."""
    context = spark.sparkContext
    context.addJobTag(_TAG)
    try:
        yield
    except BaseException:
        context.cancelJobsWithTag(_TAG)
        raise
    finally:
        context.removeJobTag(_TAG)


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        writing: Writing,
        files: Sequence[InputFile],
        progress: Progress,
    ) -> None:
        self.spark, self.writing, self.files = spark, writing, files
        self.progress = progress
        self.clusters: dict[str, list[InputFile]] = {}
        for file in files:
            self.clusters.setdefault(str(file.cluster_id), []).append(file)
        self.lake = None if writing.build is None else Lake(writing.root, writing.build)
        said = {} if writing.build is None else writing.build.clusters
        self.known = {name: msgspec.json.decode(text, type=Reached) for name, text in said.items()}

    def build(self, inputs: Sequence[str]) -> Outcome:
        with self._step("survey") as done:
            surveyed = survey(self.spark, self.files, known_files(self.lake))
            done(sum(row.records for rows in surveyed.values() for row in rows))
        plans = [self._plan(name, surveyed) for name in sorted(self.clusters)]
        news = [plan for plan in plans if self._is_news(plan)]
        if not news:
            return Outcome(build=None, clusters=tuple(self.clusters))
        staged = self._stage(news)
        rows = {**self._history(news, staged), **self._topics(news, surveyed, inputs)}
        reached, quarantined = self._plain_tables(news, surveyed, staged)
        with self._step("commit"):
            for name in (*rows, records_table().name):
                self.writing.compact(name)
            clusters = {**self.known, **reached}
            build = self.writing.finish(
                clusters={name: msgspec.json.encode(each) for name, each in clusters.items()},
                inputs=list(inputs),
            )
            self.writing.sweep()
        return Outcome(
            build=build.build,
            clusters=tuple(self.clusters),
            anew=tuple(plan.cluster_id for plan in news if plan.anew),
            records=staged.rows,
            rows=rows,
            quarantined=tuple(quarantined),
        )

    def _plan(self, cluster_id: str, surveyed: dict[str, list[SurveyRow]]) -> ClusterPlan:
        """Plan, and cut runs where the plan needs it until it needs no more cuts."""
        mine = self.clusters[cluster_id]
        by_path = {file.path: file for file in mine}
        known = self.known.get(cluster_id)
        tried: set[tuple[str, int]] = set()
        while True:
            plan = plan_cluster(cluster_id, mine, surveyed, known, frozenset(tried))
            if not plan.cuts:
                return plan
            for row, instead in survey_again(self.spark, by_path, plan.cuts).items():
                rows = surveyed[row.file]
                at = rows.index(row)
                rows[at : at + 1] = instead
                tried |= {(row.file, offset) for offset in plan.cuts[row]}

    def _is_news(self, plan: ClusterPlan) -> bool:
        known = self.known.get(plan.cluster_id)
        if known is None or plan.pieces or plan.anew:
            return True
        return known.told != told(plan) or known.topics != self._topics_of(plan)

    def _topics_of(self, plan: ClusterPlan) -> str:
        return summed_up(f for f in self.clusters[plan.cluster_id] if not f.is_metadata)

    def _stage(self, news: Sequence[ClusterPlan]) -> Staged:
        folder = self.writing.folder(records_table().name)
        with self._step("stage") as done:
            pieces = [piece for plan in news for piece in plan.pieces]
            fresh = [piece for piece in pieces if piece.file != LAKE]
            # Of what is new in a lake somebody will want to know the news.
            staged = stage(self.spark, fresh, folder, listen=self.lake is not None)
            if self.lake is not None:
                staged.added.extend(restage(self.spark, self.lake, pieces, folder))
            done(staged.rows)
        self._commit(records_table(), news, staged.added)
        return staged

    def _history(self, news: Sequence[ClusterPlan], staged: Staged) -> dict[str, int]:
        """Write every history table; how many rows each got."""
        moving = [plan for plan in news if plan.pieces]
        if not moving:
            return {}
        records = [*_record_files(staged.added), *self._waiting(moving)]
        with self._step("history") as done:
            added = write_history(
                self.spark,
                self.writing.root,
                records,
                leg_rows(moving),
                self._opened(moving),
                staged.heard,
            )
            done(sum(file.rows for files in added.values() for file in files))
        for name, files in added.items():
            self._commit(TABLES[name], moving, files)
        return {name: sum(file.rows for file in files) for name, files in added.items()}

    def _topics(
        self,
        news: Sequence[ClusterPlan],
        surveyed: Mapping[str, list[SurveyRow]],
        inputs: Sequence[str],
    ) -> dict[str, int]:
        """Write the tables that come of topic segments, all of them anew; how many rows each."""
        moved = [
            plan.cluster_id
            for plan in news
            if plan.cluster_id not in self.known
            or self.known[plan.cluster_id].topics != self._topics_of(plan)
        ]
        files = [file for name in moved for file in self.clusters[name] if not file.is_metadata]
        if not files:
            return {}
        records = sum(row.records for file in files for row in surveyed[file.path])
        with self._sized_for(records), self._step("topics") as done:
            known = self._known_topics(moved)
            tables = topic_tables(self.spark, files, surveyed, known, places_of(inputs))
            added = self._written(tables)
            done(sum(file.rows for files in added.values() for file in files))
        for name, written in added.items():
            table = TABLES[name]
            replaced = [{"cluster_id": moved}]
            self.writing.commit(name, table.columns, table.partition_by, written, replace=replaced)
        return {name: sum(file.rows for file in files) for name, files in added.items()}

    def _known_topics(self, clusters: list[str]) -> TopicsKnown:
        lake = self.lake
        if lake is None or TOPIC_SIZES.name not in lake.build.versions:
            return NOTHING_KNOWN
        chosen = [{"cluster_id": clusters}]
        sizes = lake.dataset(TOPIC_SIZES.name)
        mine = pc.is_in(sizes.column("cluster_id"), pa.array(clusters))
        return TopicsKnown(
            sizes.filter(mine).select(TOPIC_SIZES.columns.names).cast(TOPIC_SIZES.columns),
            read_pinned(self.spark, lake, GROUPS, chosen),
            read_pinned(self.spark, lake, GROUP_OFFSETS, chosen),
        )

    def _written(self, tables: Mapping[str, DataFrame]) -> dict[str, list[Added]]:
        """Write tables, some at the same time."""

        def write(name: str) -> list[Added]:
            with _stoppable(self.spark):
                return write_rows(tables[name], TABLES[name], self.writing.folder(name))

        pool = ThreadPoolExecutor(_SIDE_BY_SIDE)
        try:
            return dict(zip(tables, pool.map(write, tables), strict=True))
        except BaseException:
            self.spark.sparkContext.cancelJobsWithTag(_TAG)
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _waiting(self, moving: Sequence[ClusterPlan]) -> Iterable[RecordFile]:
        if self.lake is None:
            return ()
        opened = {
            name: each.open_from for name, each in self.known.items() if each.open_from is not None
        }
        return waiting_records(self.lake, moving, opened)

    def _opened(self, moving: Sequence[ClusterPlan]) -> list[OpenFile]:
        """Where the rows are that were open after the last build."""
        continued = [plan.cluster_id for plan in moving if any(leg.continued for leg in plan.legs)]
        if self.lake is None or not continued:
            return []
        chosen = [{"cluster_id": continued, "state": [OPEN]}]
        return [
            OpenFile(file.path, str(file.partition["cluster_id"]), table.name, file.size)
            for table in (*HISTORY, HEALTH)
            if table.name in self.lake.build.versions
            for file in files_of(self.lake.table(table.name)).values()
            if file.matches(chosen)
        ]

    def _plain_tables(
        self,
        news: Sequence[ClusterPlan],
        surveyed: Mapping[str, list[SurveyRow]],
        staged: Staged,
    ) -> tuple[dict[str, Reached], list[Quarantined]]:
        """Write what the driver knows by itself; how far each cluster has come, and what went to
        quarantine."""
        reached: dict[str, Reached] = {}
        fresh: list[Quarantined] = []
        coverage: list[Added] = []
        quarantine: list[Added] = []
        listed: list[Added] = []
        folder = self.writing.folder
        all_before = quarantined_before(self.lake)
        for plan in news:
            name = plan.cluster_id
            partition = {"cluster_id": name}
            mine = self.clusters[name]
            present = frozenset(file.path for file in mine)
            before = all_before.get(name, [])
            bad = [row for row in staged.quarantined if row.file in present]
            rows = all_quarantined(before, plan, bad, present)
            fresh += [row for row in rows if row not in set(before)]
            coverage.append(write_file(folder(COVERAGE.name), coverage_rows(plan), partition))
            if rows:
                out = quarantine_rows(name, rows)
                quarantine.append(write_file(folder(QUARANTINE.name), out, partition))
            listed.append(write_file(folder(FILES.name), file_rows(mine, surveyed), partition))
            known = self.known.get(name)
            opened = open_transaction(
                plan,
                staged.added,
                folder(records_table().name),
                None if known is None or plan.anew else known.open_from,
            )
            reached[name] = replace(
                plan.reached, open_from=opened, told=told(plan), topics=self._topics_of(plan)
            )
        names = [plan.cluster_id for plan in news]
        for table, added in ((COVERAGE, coverage), (QUARANTINE, quarantine), (FILES, listed)):
            self.writing.commit(
                table.name,
                table.columns,
                table.partition_by,
                added,
                replace=[{"cluster_id": names}],
            )
        return reached, fresh

    def _commit(self, table: Table, plans: Iterable[ClusterPlan], added: Sequence[Added]) -> None:
        """Closed rows are added, open ones replaced; all of a cluster that is made anew."""
        anew = [plan.cluster_id for plan in plans if plan.anew]
        gone: list[dict[str, list[str]]] = [{"cluster_id": anew}] if anew else []
        if table.is_history:
            gone.append({"cluster_id": [plan.cluster_id for plan in plans], "state": [OPEN]})
        self.writing.commit(table.name, table.columns, table.partition_by, added, replace=gone)

    @contextmanager
    def _step(self, name: str) -> Iterator[Callable[[int], None]]:
        started = time.monotonic()
        rows = 0

        def done(count: int) -> None:
            nonlocal rows
            rows = count

        self.progress(Step(name))
        yield done
        self.progress(Step(name, rows, time.monotonic() - started))

    @contextmanager
    def _sized_for(self, rows: int) -> Iterator[None]:
        """As many shuffle partitions as there is work for. Where there is little, Spark is told
        not to compile its plans nor to plan twice, which takes most of the time then."""
        slots = self.spark.sparkContext.defaultParallelism
        settings = {"spark.sql.shuffle.partitions": str(max(slots, rows // _SHUFFLE_ROWS))}
        if rows < _FEW_ROWS:
            settings = {
                "spark.sql.shuffle.partitions": "1",
                "spark.sql.adaptive.enabled": "false",
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            }
        before = {key: self.spark.conf.get(key, None) for key in settings}
        for key, value in settings.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, old)


def _record_files(added: Iterable[Added]) -> Iterator[RecordFile]:
    for file in added:
        cluster_id, record_type = (str(file.partition[name]) for name in PARTITIONED_BY)
        yield RecordFile(file.path, cluster_id, record_type, file.rows)

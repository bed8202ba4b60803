"""Questions to a lake from Spark: `History(spark, lake)`, whose answers are DataFrames.

They are those of `kraftline history`: the SQL is the same, and so are the versions of the tables,
whose files Spark reads by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from kraftline.inspect.moments import AtOffset, AtTime, Moment, parse_moment
from kraftline.lake import queries
from kraftline.lake.coverage import (
    NoAnswer,
    Standing,
    read_coverage,
    stand,
    stand_at_both,
    window,
)
from kraftline.lake.lake import Lake
from kraftline.lake.queries import Chosen
from kraftline.lake.tables import HISTORY, TABLES, Table
from kraftline.spark.frames import frame_of, read_pinned
from kraftline.spark.record_table import records_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A number is an offset; a text is an offset or a time, as on the command line.
When: TypeAlias = int | str | datetime
Names: TypeAlias = str | Sequence[str]
Numbers: TypeAlias = int | Sequence[int]
_numbers = count(1)


class History:
    """A lake's newest build, as it was when this was made: later builds do not show in it."""

    def __init__(self, spark: SparkSession, lake: str | Lake) -> None:
        self.spark = spark
        self.lake = Lake.at(lake) if isinstance(lake, str) else lake
        self._prefix = f"kraftline_{next(_numbers)}_"
        self._viewed: set[str] = set()

    def table(self, name: str) -> DataFrame:
        """A whole table; `records` is the log itself."""
        own = records_table() if name == records_table().name else _table(name)
        found = read_pinned(self.spark, self.lake, own, [{}])
        return frame_of(self.spark, own.columns.empty_table()) if found is None else found

    def views(self, prefix: str = "") -> list[str]:
        """Make every table a temporary view, for plain SQL; the names of the views."""
        names = [*TABLES, records_table().name]
        for name in names:
            self.table(name).createOrReplaceTempView(prefix + name)
        return [prefix + name for name in names]

    def as_of(
        self, *, offset: int | None = None, time: str | datetime | None = None, cluster: str = ""
    ) -> AsOf:
        """How the tables stood at an offset of one cluster, or at a time; without either, at the
        end. NoAnswer where the lake does not know."""
        if offset is not None and time is not None:
            raise NoAnswer("either an offset or a time: not both")
        moment = _moment(offset if time is None else time)
        return AsOf(self, stand(self.lake, moment, _clusters(cluster)))

    def diff(self, a: When, b: When, *, cluster: str = "") -> Difference:
        """What is different between two moments, table by table."""
        return Difference(
            self, *stand_at_both(self.lake, _moment(a), _moment(b), _clusters(cluster))
        )

    def changes(
        self,
        *,
        since: When | None = None,
        until: When | None = None,
        cluster: str = "",
        topics: Names = (),
        brokers: Numbers = (),
        kinds: Names = (),
    ) -> DataFrame:
        """What happened, as rows of `changes`."""
        looked = window(self.lake, _moment(since), _moment(until), _clusters(cluster))
        chosen = _chosen(topics, brokers, kinds)
        return self.query(queries.changes(looked, chosen, self._prefix), "changes")

    def health(
        self,
        *,
        since: When | None = None,
        until: When | None = None,
        cluster: str = "",
        topics: Names = (),
        brokers: Numbers = (),
        kinds: Names = (),
    ) -> DataFrame:
        """What was wrong at any time of a window, as rows of `health`."""
        looked = window(self.lake, _moment(since), _moment(until), _clusters(cluster))
        chosen = _chosen(topics, brokers, kinds)
        return self.query(queries.health(looked, chosen, self._prefix), "health")

    def topic(self, name: str, *, cluster: str = "") -> Topic:
        return Topic(self, name, cluster)

    @property
    def prefix(self) -> str:
        """What stands before the names of this history's own views."""
        return self._prefix

    def query(self, sql: str, *names: str) -> DataFrame:
        """The answer to SQL over tables that go by their names behind `prefix`."""
        for name in names:
            if name not in self._viewed:
                self.table(name).createOrReplaceTempView(self._prefix + name)
                self._viewed.add(name)
        return self.spark.sql(sql.replace("\\", "\\\\"))


class AsOf:
    """The tables as they stood; `standing` says where the moment falls in each cluster."""

    def __init__(self, history: History, standing: Standing) -> None:
        self.standing = standing
        self._history = history

    def table(self, name: str, *, topics: Names = (), brokers: Numbers = ()) -> DataFrame:
        """Rows of a history table that were true then."""
        chosen = _chosen(topics, brokers)
        sql = queries.as_of(_table(name), self.standing, chosen, self._history.prefix)
        return self._history.query(sql, name)


class Difference:
    """What is different between two moments."""

    def __init__(self, history: History, before: Standing, after: Standing) -> None:
        self.before, self.after = before, after
        self._history = history

    def table(self, name: str, *, topics: Names = (), brokers: Numbers = ()) -> DataFrame:
        """Rows of a history table that came, went or changed: the columns that name one, `change`,
        and every other column as `before_` and `after_` it."""
        own = _table(name)
        if own not in HISTORY:
            raise NoAnswer(f"{name} has no difference")
        chosen = _chosen(topics, brokers)
        sql = queries.difference(own, self.before, self.after, chosen, self._history.prefix)
        return self._history.query(sql, name)


class Topic:
    """One topic's story."""

    def __init__(self, history: History, name: str, cluster: str) -> None:
        self.name = name
        self._history = history
        self._clusters = _clusters(cluster)

    def timeline(self) -> DataFrame:
        """Its changes, and what was wrong from when to when, in order."""
        read_coverage(self._history.lake, self._clusters)  # NoAnswer: no such cluster
        sql = queries.timeline(self.name, self._clusters, self._history.prefix)
        return self._history.query(sql, "changes", "health")


def _table(name: str) -> Table:
    if name not in TABLES:
        raise NoAnswer(f"there is no table {name}; there are {', '.join(TABLES)}")
    return TABLES[name]


def _clusters(cluster: str) -> tuple[str, ...]:
    return (cluster,) if cluster else ()


def _chosen(topics: Names, brokers: Numbers, kinds: Names = ()) -> Chosen:
    """One name is a choice of one: not of its letters."""
    return Chosen(
        (topics,) if isinstance(topics, str) else tuple(topics),
        (brokers,) if isinstance(brokers, int) else tuple(brokers),
        (kinds,) if isinstance(kinds, str) else tuple(kinds),
    )


def _moment(when: When | None) -> Moment | None:
    match when:
        case None:
            return None
        case int():
            return AtOffset(when)
        case datetime():
            aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
            return AtTime(round(aware.timestamp() * 1000))
        case str():
            try:
                return parse_moment(when)
            except ValueError as error:
                raise NoAnswer(str(error)) from None
    raise AssertionError(when)

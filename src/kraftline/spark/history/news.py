"""Which partitions a build has news of. The open rows of all others stay as they are.

It is told from records alone, before these are replayed, and rather too much is taken for news than
too little: `covers` says whether that went well. Topics and partitions are known by numbers that
are made of their names; where two share a number, both have news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from kraftline.lake.files import open_for_reading
from kraftline.spark.history.around import Around
from kraftline.spark.history.exchange import RecordFile
from kraftline.spark.history.lives import moments
from kraftline.spark.history.moments import Leg
from kraftline.spark.history.placed import Flags
from kraftline.spark.record_table import records_table, struct_name
from kraftline.spark.tasks import run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Codes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]

_SPREAD: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_HEAD_BITS: Final = 20
_BEHIND_HEAD: Final = np.uint64(64 - _HEAD_BITS)
_LOUD, _NAMED, _RESTLESS, _CHANGED, _PARTITION = range(5)
HEARD: Final = pa.schema([pa.field("what", pa.int32()), pa.field("code", pa.int64())])
# Records after which there may be news of all partitions of a topic.
_OF_TOPICS: Final = ("TOPIC_RECORD", "REMOVE_TOPIC_RECORD", "PARTITION_RECORD")
_MIN_ISR: Final = "min.insync.replicas"
_PLACE: Final = ("leg", "offset", "in_snapshot")
_TASK_ROWS: Final = 100_000  # fewer are not worth a task


class News(Struct, frozen=True):
    """Clusters with news that may concern any partition, and sorted numbers: of topics with news
    that may concern all of theirs, by id and by name; of topics and of partitions that changed."""

    restless: frozenset[str]
    loud: Codes
    named: Codes
    changed: Codes
    partitions: Codes

    def of_rows(self, cluster_id: str, rows: pa.Table) -> Flags:
        """Whether there may be news of each row's partition."""
        found = self._of_topics(cluster_id, rows)
        codes, of_row = _coded(cluster_id, rows.column("topic_id"))
        maybe = np.flatnonzero(~found & _in(codes, self.changed)[of_row])
        numbers = rows.column("partition").to_numpy()[maybe].astype(np.uint64)
        found[maybe] = _in(_partition_codes(codes[of_row[maybe]], numbers), self.partitions)
        return found

    def of_topics(self, topics: pa.Table) -> Flags:
        """Whether there may be news of a partition of each topic, out of many clusters."""

        def asked(cluster_id: str, rows: pa.Table) -> Flags:
            codes = topic_codes(cluster_id, rows.column("topic_id"))
            found: Flags = self._of_topics(cluster_id, rows) | _in(codes, self.changed)
            return found

        return _by_cluster(topics, asked)

    def covers(self, said: pa.Table, restless: Iterable[str]) -> bool:
        """Whether topics of which more is said than that they last, and clusters in which anything
        happened that concerns all partitions, are those that were taken for such."""
        return self.restless.issuperset(restless) and bool(_by_cluster(said, self._of_topics).all())

    def _of_topics(self, cluster_id: str, rows: pa.Table) -> Flags:
        """Whether there may be news of all partitions of each row's topic."""
        if cluster_id in self.restless:
            return np.ones(rows.num_rows, bool)
        codes, of_row = _coded(cluster_id, rows.column("topic_id"))
        names, of_name = _coded(cluster_id, rows.column("topic"))
        found: Flags = _in(codes, self.loud)[of_row] | _in(names, self.named)[of_name]
        return found


def _by_cluster(topics: pa.Table, ask: Callable[[str, pa.Table], Flags]) -> Flags:
    found = np.zeros(topics.num_rows, bool)
    clusters = topics.column("cluster_id").combine_chunks().dictionary_encode()
    of = clusters.indices.to_numpy()
    for number, name in enumerate(clusters.dictionary.to_pylist()):
        here = np.flatnonzero(of == number)
        found[here] = ask(name, topics.take(pa.array(here)))
    return found


def news_of(
    spark: SparkSession,
    root: str,
    records: Iterable[RecordFile],
    legs: Mapping[str, Sequence[Leg]],
    staged: pa.Table | None = None,
) -> News:
    """News in records of clusters with these legs. `staged` is what was heard of those that are
    new, if somebody has listened (`heard_in`)."""
    telling = [
        file
        for file in records
        if file.type in (*_OF_TOPICS, *_SOME) and (staged is None or file.leg is not None)
    ]
    folder = f"{root}/{records_table().name}"
    slots = spark.sparkContext.defaultParallelism
    most = 1 + sum(file.rows for file in telling) // _TASK_ROWS
    work = shared_out(telling, lambda file: 1 + file.rows, min(slots, most))
    heard = run_tasks(spark, work, lambda mine: _heard(folder, mine), HEARD)
    if staged is not None:
        heard = pa.concat_tables([heard, staged])
    what, code = (column.to_numpy() for column in heard.columns)
    found = [np.unique(code[what == each].view(np.uint64)) for each in range(_PARTITION + 1)]
    restless = {
        name
        for name, mine in legs.items()
        if len(mine) > 1
        or not mine[0].continued
        or _in(_cluster_code(name), found[_RESTLESS]).any()
    }
    return News(
        frozenset(restless), found[_LOUD], found[_NAMED], found[_CHANGED], found[_PARTITION]
    )


def is_restless(around: Around) -> bool:
    """Whether anything happened to a cluster that concerns partitions without their records."""
    return any(
        leg.clears or leg.leg.next_base_offset is not None or moments(leg.min_isr)
        for leg in around.legs.values()
    )


def _heard(folder: str, files: Sequence[RecordFile]) -> Iterator[pa.RecordBatch]:
    for file in files:
        struct = struct_name(file.type)
        with open_for_reading(f"{folder}/{file.path}") as source, pq.ParquetFile(source) as opened:
            columns = [f"{struct}.{name}" for name in _SOME.get(file.type, ("topic_id",))]
            rows = opened.read([*_PLACE, *columns])
        said = rows.filter(file.wanted(rows)).column(struct).combine_chunks()
        yield from heard_in(file.cluster_id, file.type, said)


def heard_in(
    cluster_id: str, record_type: str, said: pa.StructArray | None
) -> Iterator[pa.RecordBatch]:
    """What records of a type have news of, as rows of HEARD; `said` are their own fields."""
    if said is None or not len(said):
        return
    if record_type in _OF_TOPICS:
        yield _codes(_LOUD, topic_codes(cluster_id, said.field("topic_id")))
    elif record_type == "CONFIG_RECORD":
        here = pc.equal(said.field("name"), _MIN_ISR)
        names = said.field("resource_name").filter(here)
        # Of a broker's own too, which no topic is called like: it does no harm.
        yield _codes(_NAMED, topic_codes(cluster_id, names))
        if pc.any(pc.equal(names, "")).as_py():
            yield _codes(_RESTLESS, _cluster_code(cluster_id))
    elif record_type == "CLEAR_ELR_RECORD":
        yield _codes(_RESTLESS, _cluster_code(cluster_id))
    elif record_type in _SOME:
        topics = topic_codes(cluster_id, said.field("topic_id"))
        numbers = said.field("partition_id").to_numpy().astype(np.uint64)
        yield _codes(_CHANGED, topics)
        yield _codes(_PARTITION, _partition_codes(topics, numbers))


# Other records that are listened to, and their fields that count.
_SOME: Final = {
    "PARTITION_CHANGE_RECORD": ("topic_id", "partition_id"),
    "CONFIG_RECORD": ("name", "resource_name"),
    "CLEAR_ELR_RECORD": ("topic_name",),
}


def _cluster_code(cluster_id: str) -> Codes:
    return topic_codes(cluster_id, pa.array([""]))


def _codes(what: int, codes: Codes) -> pa.RecordBatch:
    found = np.unique(codes).view(np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(np.full(len(found), what, np.int32)), pa.array(found)], schema=HEARD
    )


def topic_codes(cluster_id: str, ids: pa.Array | pa.ChunkedArray) -> Codes:
    """A number for each topic."""
    codes, of_row = _coded(cluster_id, ids)
    return codes[of_row]


def _coded(
    cluster_id: str, ids: pa.Array | pa.ChunkedArray
) -> tuple[Codes, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """The numbers of topics, each once, and which of them every row has."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    key = cluster_id.encode()[:64]  # two clusters that share it share some news
    numbers = [_number(key, name) for name in coded.dictionary.to_pylist()]
    return np.array(numbers, np.uint64), coded.indices.to_numpy()


@lru_cache(1 << 16)
def _number(key: bytes, name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8, key=key).digest(), "big")


def _partition_codes(topics: Codes, numbers: Codes) -> Codes:
    with np.errstate(over="ignore"):
        found: Codes = (topics ^ (numbers + np.uint64(1))) * _SPREAD
    return found


def _in(codes: Codes, among: Codes) -> Flags:
    """Whether each is one of some sorted numbers."""
    if not len(among):
        return np.zeros(len(codes), bool)
    heads = np.zeros(1 << _HEAD_BITS, bool)
    heads[among >> _BEHIND_HEAD] = True
    found: Flags = heads[codes >> _BEHIND_HEAD]
    # Mostly that has told it already.
    maybe = np.flatnonzero(found)
    at = np.minimum(np.searchsorted(among, codes[maybe]), len(among) - 1)
    found[maybe] = among[at] == codes[maybe]
    return found

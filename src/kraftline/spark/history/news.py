"""Which partitions a build has news of. The open rows of all others stay as they are.

Topics and partitions are known by numbers that are made of their names. Two that share a number
are both taken for news: that costs a little and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from kraftline.lake.files import open_for_reading
from kraftline.spark.history.around import Around
from kraftline.spark.history.exchange import PARTITION_TYPES, RecordFile
from kraftline.spark.history.lives import moments
from kraftline.spark.history.placed import Flags
from kraftline.spark.record_table import records_table, struct_name
from kraftline.spark.tasks import run_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Codes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]

# More news than this is not told apart: most partitions have some then.
_MANY: Final = 2_000_000
_SPREAD: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_HEAD_BITS: Final = 20
_BEHIND_HEAD: Final = np.uint64(64 - _HEAD_BITS)
_GROWN, _CHANGED, _PARTITION = range(3)
_HEARD: Final = pa.schema([pa.field("what", pa.int32()), pa.field("code", pa.int64())])


class News(Struct, frozen=True):
    """Sorted numbers: of topics that are there before and after, with all of their partitions and
    with nothing new that concerns all of these; of topics and of partitions that changed."""

    quiet: Codes
    changed: Codes
    partitions: Codes

    def of_rows(self, cluster_id: str, rows: pa.Table) -> Flags:
        """Whether there may be news of each row's partition."""
        codes, of_row = _coded(cluster_id, rows.column("topic_id"))
        found: Flags = ~_in(codes, self.quiet)[of_row]
        maybe = np.flatnonzero(~found & _in(codes, self.changed)[of_row])
        numbers = rows.column("partition").to_numpy()[maybe].astype(np.uint64)
        found[maybe] = _in(_partition_codes(codes[of_row[maybe]], numbers), self.partitions)
        return found

    def of_topics(self, topics: pa.Table) -> pa.Table:
        """Those rows that say something of topics with news."""
        codes = np.zeros(topics.num_rows, np.uint64)
        clusters = topics.column("cluster_id").combine_chunks().dictionary_encode()
        of = clusters.indices.to_numpy()
        for number, name in enumerate(clusters.dictionary.to_pylist()):
            here = np.flatnonzero(of == number)
            codes[here] = topic_codes(name, topics.column("topic_id").take(pa.array(here)))
        chosen = _in(codes, self.changed) | ~_in(codes, self.quiet)
        return topics.filter(pa.array(chosen))


def news_of(
    spark: SparkSession,
    root: str,
    records: Sequence[RecordFile],
    arounds: Mapping[str, Around],
    lasting: pa.Table,
) -> News | None:
    """`records` are those of partitions, `lasting` the topics of which nothing was said but that
    they are still there. None where it is not worth telling."""
    if sum(file.rows for file in records) > _MANY:
        return None
    folder = f"{root}/{records_table().name}"
    slots = spark.sparkContext.defaultParallelism
    work = shared_out(records, lambda file: 1 + file.rows, slots)
    heard = run_tasks(spark, work, lambda mine: _heard(folder, mine), _HEARD)
    what, code = (column.to_numpy() for column in heard.columns)
    grown, changed, partitions = (
        np.unique(code[what == each].view(np.uint64)) for each in (_GROWN, _CHANGED, _PARTITION)
    )
    clusters = lasting.column("cluster_id").to_pylist()
    calm = {name for name, around in arounds.items() if _is_calm(around)}
    here = lasting.filter(pa.array([name in calm for name in clusters], pa.bool_()))
    quiet = [
        topic_codes(name, here.filter(pc.equal(here.column("cluster_id"), name)).column("topic_id"))
        for name in calm
    ]
    known = np.setdiff1d(np.concatenate(quiet), grown) if quiet else np.zeros(0, np.uint64)
    return News(known, changed, partitions)


def _is_calm(around: Around) -> bool:
    """Whether nothing happened to a cluster that concerns partitions without their records."""
    return not any(
        leg.clears or leg.leg.next_base_offset is not None or moments(leg.min_isr)
        for leg in around.legs.values()
    )


def _heard(folder: str, files: Sequence[RecordFile]) -> Iterator[pa.RecordBatch]:
    for file in files:
        struct = struct_name(file.type)
        names = [f"{struct}.topic_id", f"{struct}.partition_id"]
        with open_for_reading(f"{folder}/{file.path}") as source, pq.ParquetFile(source) as opened:
            said = opened.read(names).column(struct).combine_chunks()
        topics = topic_codes(file.cluster_id, said.field("topic_id"))
        if file.type == PARTITION_TYPES[0]:
            yield _codes(_GROWN, topics)
        else:
            numbers = said.field("partition_id").to_numpy().astype(np.uint64)
            yield _codes(_CHANGED, topics)
            yield _codes(_PARTITION, _partition_codes(topics, numbers))


def _codes(what: int, codes: Codes) -> pa.RecordBatch:
    found = np.unique(codes).view(np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(np.full(len(found), what, np.int32)), pa.array(found)], schema=_HEARD
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
    numbers = [
        int.from_bytes(blake2b(name.encode(), digest_size=8, key=key).digest(), "big")
        for name in coded.dictionary.to_pylist()
    ]
    return np.array(numbers, np.uint64), coded.indices.to_numpy()


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

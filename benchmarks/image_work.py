"""The child process that `benchmarks.image` times: a file to an image, then changes in it.

A module of its own, so that what sets the contest up is not imported within the time.
Arguments: file, how many records go into one publication (0: all), whether changes are timed.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from array import array
from itertools import compress
from pathlib import Path

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import positions, prepare
from kraftline.schema.metadata import (
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
)
from kraftline.schema.metadata.frame import RecordReader
from kraftline.schema.uuids import Uuid
from kraftline.storage.segment import SegmentReader

_CONTROL = 0x20


def work(path: str, together: int, changes: bool) -> None:
    # What the loader does too: nothing here can become a cycle.
    gc.disable()
    start = time.perf_counter()
    here = Provenance(1, 1, 1, True)
    image, delta = EMPTY, MetadataDelta(EMPTY)
    rows = refused = published = 0
    with SegmentReader(Path(path), window=1024 * 1024) as reader:
        for buffer, begin, end, position in reader.runs():
            run = prepare(buffer, begin, end, position=position)
            control = {
                at // kernel.STRIDE
                for at in range(kernel.ATTRIBUTES, len(run.table), kernel.STRIDE)
                if run.table[at] & _CONTROL
            }
            for source, numbers, stride in positions(run):
                starts = numbers[kernel.P_VALUE :: stride]
                ends = numbers[kernel.P_VALUE_END :: stride]
                if control:
                    typed = [row not in control for row in numbers[kernel.P_ROW :: stride]]
                    starts = array("q", compress(starts, typed))
                    ends = array("q", compress(ends, typed))
                rows += len(starts)
                replay = delta.replay
                for record in RecordReader(bytes(source)).read(starts, ends):
                    try:
                        replay(record)
                    except ReplayError:
                        kind = type(record)
                        refused += kind not in (BeginTransactionRecord, EndTransactionRecord)
                if together and rows - published >= together:
                    image, published = delta.apply(here), rows
                    delta = MetadataDelta(image)
    image = delta.apply(here)
    report = {"seconds": time.perf_counter() - start, "rows": rows, "refused": refused}
    print("ready", flush=True)
    del delta, replay
    report["resident"] = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    if changes:
        report |= _changes(image)
    report["topics"] = len(image.topics.by_id)
    print(json.dumps(report))


def _changes(image: MetadataImage) -> dict[str, float]:
    rng, here = random.Random(1), Provenance(2, 1, 1, True)
    ids = list(image.topics.by_id)

    def moves(count: int, ids: list[Uuid]) -> list[PartitionChangeRecord]:
        return [
            PartitionChangeRecord(
                partition_id=rng.randrange(len(image.topics.by_id[topic].partitions)),
                topic_id=Uuid(bytes(topic)),
                leader=7,
                isr=(7, 8),
            )
            for topic in rng.choices(ids, k=count)
        ]

    def one_by_one(ids: list[Uuid]) -> float:
        """The median of the best round, in microseconds."""
        rounds, now = [], image
        for _ in range(40):
            times = []
            for change in moves(1_000, ids):
                start = time.perf_counter()
                delta = MetadataDelta(now)
                delta.replay(change)
                now = delta.apply(here)
                times.append(time.perf_counter() - start)
            rounds.append(statistics.median(times))
        return min(rounds) * 1e6

    one, again = one_by_one(ids), one_by_one(ids[:100])
    together = moves(30_000, ids)
    many = []
    for _ in range(5):
        start = time.perf_counter()
        delta = MetadataDelta(image)
        for change in together:
            delta.replay(change)
        delta.apply(here)
        many.append(time.perf_counter() - start)
    return {
        "one_us": one,
        "again_us": again,
        "moves_ms": min(many) * 1e3,
        "first_moves_ms": many[0] * 1e3,
    }


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "true")

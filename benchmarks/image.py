"""Images beside Kafka's own: `python -m benchmarks.image [TOPICS]`, ten partitions a topic.

A snapshot to an image, one partition changed in it, thousands of leaders moved at once, and a log
of mixed records; Kafka's MetadataDelta and MetadataImage do the same (`ImageTimes.java`).
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.inputs import make_metadata
from benchmarks.machine import describe

_PARTITIONS = 10
_BROKERS = 60
_CONTROL = 0x20
_ROUNDS = 3
_MIXED = 2_000_000


PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-images.md"
# What is compared, in which report, and how it is said.
_ROWS = (
    ("snapshot to image, process start included", "loaded", "whole", "s"),
    ("memory (ours: whole process; Kafka: used heap)", "loaded", "resident", "MB"),
    ("one partition changed in it, any of them", "large", "one_us", "µs"),
    ("one partition changed in it, the same 1,000 again and again", "large", "again_us", "µs"),
    ("one partition changed among 1,000", "small", "one_us", "µs"),
    ("one partition changed in a topic of 1,000", "wide", "one_us", "µs"),
    ("one partition changed in a topic of 10,000", "widest", "one_us", "µs"),
    ("30,000 leaders moved at once", "large", "moves_ms", "ms"),
    ("the same, the first time", "large", "first_moves_ms", "ms"),
    (f"log of {_MIXED:,} mixed records, published every 10,000", "mixed", "seconds", "s"),
)


def main() -> None:
    topics = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    machine = describe()
    root = Path(tempfile.gettempdir()) / "kraftline-benchmarks"
    root.mkdir(exist_ok=True)
    large, small = _snapshot(root, topics), _snapshot(root, 100)
    wide, widest = _snapshot(root, 1, 1_000), _snapshot(root, 1, 10_000)
    mixed = root / f"mixed-{_MIXED}" / f"{0:020}.log"
    if not mixed.exists():
        mixed.parent.mkdir()
        make_metadata(mixed, _MIXED)
    contests = (
        ("loaded", large, 0, False),
        ("large", large, 0, True),
        ("small", small, 0, True),
        ("wide", wide, 0, True),
        ("widest", widest, 0, True),
        ("mixed", mixed, 10_000, False),
    )
    reports: dict[str, dict[str, dict[str, float]]] = {}
    for _ in range(_ROUNDS):
        for name, path, together, changes in contests:
            for who, command in _contenders(path, together, changes):
                start = time.perf_counter()
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                report = json.loads(done.stdout.splitlines()[-1])
                report["whole"] = time.perf_counter() - start
                report.setdefault("resident", report.get("heap"))
                best = reports.setdefault(name, {}).setdefault(who, report)
                best |= {key: min(best[key], report[key]) for key in report}
    lines = [
        "# Benchmarks: images",
        "",
        f"A snapshot of {topics * _PARTITIONS:,} partitions and a log of mixed records, replayed",
        "by Kraftline and by Kafka's own MetadataDelta and MetadataImage (`ImageTimes.java`), one",
        f"process after the other, the best of {_ROUNDS} rounds: `python -m benchmarks.image`.",
        "Written by the run; do not edit.",
        "",
        "Single changes: the median of the best of 40 rounds of 1,000, made before they are timed.",
        "Any of a million partitions is one that the processor's caches have forgotten.",
        "",
        "| work | us | Kafka | Kafka : us |",
        "|---|---|---|---|",
    ]
    for work_name, name, key, unit in _ROWS:
        us, kafka = (reports[name][who][key] for who in ("us", "Kafka"))
        scale = 1e6 if unit == "MB" else 1
        lines.append(
            f"| {work_name} | {us / scale:,.1f} {unit} | {kafka / scale:,.1f} {unit} "
            f"| {kafka / us:.2f}x |"
        )
    lines += ["", "| a change beside one among 1,000 partitions | us | Kafka |", "|---|---|---|"]
    for work_name, key in (
        ("the same ones again: what the size of a cluster costs", "again_us"),
        ("any of them: what cold memory costs", "one_us"),
    ):
        us, kafka = (
            reports["large"][who][key] / reports["small"][who][key] for who in ("us", "Kafka")
        )
        lines.append(f"| {work_name} | {us:.2f}x | {kafka:.2f}x |")
    lines += ["", "| machine |  |", "|---|---|", *(f"| {k} | {v} |" for k, v in machine.items())]
    print("\n".join(lines))
    PAGE.write_text("\n".join(lines) + "\n")


def _contenders(path: Path, together: int, changes: bool) -> Iterator[tuple[str, list[str]]]:
    from tests.oracle.java import command_line

    args = [str(path), str(together), str(changes).lower()]
    yield "us", [sys.executable, "-m", "benchmarks.image", "work", *args]
    yield "Kafka", command_line("ImageTimes", args, ours=True, heap="4g")


def _snapshot(root: Path, topics: int, partitions: int = _PARTITIONS) -> Path:
    """A snapshot's records in batches of some thousand, made once."""
    from kraftline.records.record import Record
    from kraftline.records.write import build_batch

    path = root / f"image-{topics}x{partitions}.log"
    if path.exists():
        return path
    aside = path.with_suffix(".part")
    with aside.open("wb") as out:
        batch: list[Record] = []
        for offset, value in enumerate(_records(topics, partitions)):
            batch.append(Record(offset, 0, None, value))
            if len(batch) == 4096:
                out.write(build_batch(batch))
                batch = []
        out.write(build_batch(batch))
    return aside.rename(path)


def _records(topics: int, partitions: int) -> Iterator[bytes]:
    from kraftline.schema import metadata as m
    from kraftline.schema.metadata.frame import encode_record
    from kraftline.schema.uuids import Uuid

    rng = random.Random(1)
    directories = [Uuid(rng.randbytes(16)) for _ in range(_BROKERS)]
    yield encode_record(m.FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
    for number in range(topics):
        topic = Uuid(rng.randbytes(16))
        yield encode_record(m.TopicRecord(name=f"topic-{number}", topic_id=topic), 0)
        for partition in range(partitions):
            first, step = rng.randrange(_BROKERS), rng.randrange(1, 20)
            replicas = tuple((first + i * step) % _BROKERS for i in range(3))
            record = m.PartitionRecord(
                partition_id=partition,
                topic_id=topic,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=3,
                partition_epoch=5,
                directories=tuple(directories[broker] for broker in replicas),
            )
            yield encode_record(record, 2)


def work(path: str, together: int, changes: bool) -> None:
    """One child process of ours: load, then change."""
    from array import array
    from itertools import compress

    from kraftline.metadata.faults import ReplayError
    from kraftline.metadata.image import EMPTY, MetadataDelta, Provenance
    from kraftline.records.kernel import active as kernel
    from kraftline.records.runs import positions, prepare
    from kraftline.schema.metadata import BeginTransactionRecord, EndTransactionRecord
    from kraftline.schema.metadata.frame import RecordReader
    from kraftline.storage.segment import SegmentReader

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
                for record, _ in map(RecordReader(bytes(source)).read, starts, ends):
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
    del delta, replay
    report["resident"] = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    if changes:
        report |= _changes(image)
    report["topics"] = len(image.topics.by_id)
    print(json.dumps(report))


def _changes(image: object) -> dict[str, float]:
    from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
    from kraftline.schema.metadata import PartitionChangeRecord
    from kraftline.schema.uuids import Uuid

    assert isinstance(image, MetadataImage)
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
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "true")
    else:
        main()

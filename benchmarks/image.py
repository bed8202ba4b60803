"""Images beside Kafka's own: `python -m benchmarks.image [TOPICS]`, ten partitions a topic.

A snapshot to an image, one partition changed in it, thousands of leaders moved at once, and a log
of mixed records; Kafka's MetadataDelta and MetadataImage do the same (`ImageTimes.java`).
"""

from __future__ import annotations

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
_ROUNDS = 5
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
    growth: dict[tuple[str, str], list[float]] = {}
    for _ in range(_ROUNDS):
        now: dict[tuple[str, str], dict[str, float]] = {}
        for name, path, together, changes in contests:
            for who, command in _contenders(path, together, changes):
                report = now[name, who] = _run(command)
                best = reports.setdefault(name, {}).setdefault(who, report)
                best |= {key: min(best[key], report[key]) for key in report}
        for (name, who), report in now.items():
            if name == "large":
                for key in ("again_us", "one_us"):
                    ratio = report[key] / now["small", who]["one_us"]
                    growth.setdefault((who, key), []).append(ratio)
    lines = [
        "# Benchmarks: images",
        "",
        f"A snapshot of {topics * _PARTITIONS:,} partitions and a log of mixed records, replayed",
        "by Kraftline and by Kafka's own MetadataDelta and MetadataImage (`ImageTimes.java`), one",
        f"process after the other, the best of {_ROUNDS} rounds: `python -m benchmarks.image`.",
        "Written by the run; do not edit.",
        "",
        "Single changes: the median of the best of 40 rounds of 1,000, made before they are timed.",
        "Any of a million partitions is most likely one that was not touched lately.",
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
    lines += [
        "",
        "Of two runs of one round, one after the other; the median of the rounds, and all of them:",
        "",
        "| a change beside one among 1,000 partitions | us | Kafka |",
        "|---|---|---|",
    ]
    for work_name, key in (
        ("the same 1,000 again and again", "again_us"),
        ("any of them, most not touched lately", "one_us"),
    ):
        ours, theirs = (_spread(growth[who, key]) for who in ("us", "Kafka"))
        lines.append(f"| {work_name} | {ours} | {theirs} |")
    lines += ["", "| machine |  |", "|---|---|", *(f"| {k} | {v} |" for k, v in machine.items())]
    print("\n".join(lines))
    PAGE.write_text("\n".join(lines) + "\n")


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f}x ({', '.join(f'{each:.2f}' for each in ratios)})"


def _run(command: list[str]) -> dict[str, float]:
    """What a contender reports; `whole` is the time from its start until it said that the image
    is ready. What comes then, the measuring of memory above all, is nobody's work."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        whole = time.perf_counter() - start
        rest = process.stdout.read()
    if process.returncode or ready != "ready\n":
        raise SystemExit(f"{command[0]} failed: {ready}{rest}")
    report: dict[str, float] = json.loads(rest)
    return report | {"whole": whole}


def _contenders(path: Path, together: int, changes: bool) -> Iterator[tuple[str, list[str]]]:
    from tests.oracle.java import command_line

    args = [str(path), str(together), str(changes).lower()]
    yield "us", [sys.executable, "-m", "benchmarks.image_work", *args]
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


if __name__ == "__main__":
    main()

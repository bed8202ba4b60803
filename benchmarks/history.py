"""The history pipeline: `python -m benchmarks.history [RECORDS]`.

A metadata log of mixed records to all tables of a lake, a second run with one percent more, a log
of a quarter of the size, and questions to the lake from the command line. No rival exists.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.inputs import SEGMENT, START_MS, make_metadata
from benchmarks.machine import describe

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-history.md"
_CLUSTER = "benchmark"
_QUESTIONS = 5
_FIRST_RUNS, _SECOND_RUNS = 2, 5


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        print(json.dumps(work(Path(sys.argv[2]), *map(int, sys.argv[3:]))))
        return
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    machine = describe()
    root = Path(tempfile.gettempdir()) / "kraftline-benchmarks"
    root.mkdir(exist_ok=True)
    small = measured(root, records // 4)
    large = measured(root, records)
    lake = root / "history" / f"lake-{records}"
    asked = questions(lake)
    lines = [
        "# Benchmarks: the history pipeline",
        "",
        "A metadata log of mixed records (mostly partition changes) to every table of a lake, on",
        "one machine: `python -m benchmarks.history`. Written by the run; do not edit.",
        f"The best of {_FIRST_RUNS} first runs, and of {_SECOND_RUNS} second ones, each from the "
        "lake as the first",
        "left it.",
        "",
        "| work | records | time | rate | goal |",
        "|---|---|---|---|---|",
        row("all history tables, warm session", large, "first", "80,000 records/s, aim 200,000"),
        row("the same of a quarter", small, "first", ""),
        row("second run with 1 % more", large, "second", "1/10 of the first, aim 1/30"),
        row("the same of a quarter", small, "second", ""),
        row("third run without news", large, "third", ""),
        "",
        f"Four times the records take {large['first'] / small['first']:.2f} times as long "
        "(goal: within 25 % of 4).",
        f"The second run takes 1/{large['first'] / large['second']:.1f} of the first.",
        f"The session's start and first Python task take {large['session']:.1f} s and are not in.",
        "",
        "| size | records | log | lake | time for a million records | time for a GB of log |",
        "|---|---|---|---|---|---|",
        *map(cost, (small, large)),
        "",
        "| part of the first run | time |",
        "|---|---|",
        *(f"| {name} | {took:.1f} s |" for name, took in large["steps"]),
        "",
        "| question, whole process, best of five | time | goal |",
        "|---|---|---|",
        *(f"| `{what}` | {took:.2f} s | 2 s, aim 0.7 |" for what, took in asked.items()),
        "",
        "| machine |  |",
        "|---|---|",
        *(f"| {key} | {value} |" for key, value in machine.items()),
    ]
    print("\n".join(lines))
    PAGE.write_text("\n".join(lines) + "\n")


def row(name: str, found: dict, key: str, goal: str) -> str:  # type: ignore[type-arg]  # JSON
    count = found["records"] if key == "first" else found["more"] if key == "second" else 0
    rate = f"{count / found[key]:,.0f} records/s" if count else ""
    return f"| {name} | {count:,} | {found[key]:.1f} s | {rate} | {goal} |"


def cost(found: dict) -> str:  # type: ignore[type-arg]  # JSON
    count, size, lake, took = (found[key] for key in ("records", "bytes", "lake_bytes", "first"))
    return (
        f"| first run | {count:,} | {size / 1e6:,.0f} MB | {lake / 1e6:,.0f} MB "
        f"| {took / count * 1e6:.1f} s | {took / size * 1e9:.0f} s |"
    )


def measured(root: Path, records: int) -> dict:  # type: ignore[type-arg]  # JSON
    """In a process of its own, so that one size does not warm up for the next."""
    command = [sys.executable, "-m", "benchmarks.history", "work", str(root), str(records)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-4000:])
    found: dict = json.loads(done.stdout.splitlines()[-1])  # type: ignore[type-arg]  # JSON
    return found


def work(root: Path, records: int) -> dict:  # type: ignore[type-arg]  # JSON
    from kraftline.spark.build import Step, build
    from kraftline.spark.session import PYTHON_WORKS, local_session
    from kraftline.storage.segment import SegmentReader

    whole = root / f"history-{records}" / SEGMENT
    if not whole.exists():
        whole.parent.mkdir(parents=True, exist_ok=True)
        make_metadata(whole, records + records // 100)
    place = root / "history" / f"metadata-{records}" / "__cluster_metadata-0"
    lake, before = (root / "history" / f"{name}-{records}" for name in ("lake", "before"))
    shutil.rmtree(place.parent, ignore_errors=True)
    place.mkdir(parents=True)
    with SegmentReader(str(whole)) as reader:
        cut = reader.position_of_offset(records)
    started = time.perf_counter()
    settings: dict[str, Any] = PYTHON_WORKS  # as from the command line
    spark = local_session(memory="6g", **settings)
    build(spark, [str(warm_up(root))], str(root / "history" / "warm"), cluster_id=_CLUSTER)
    found: dict = {  # type: ignore[type-arg]  # JSON
        "records": records,
        "session": time.perf_counter() - started,
        "steps": [],
    }

    def note(step: Step) -> None:
        if step.seconds is not None and "first" not in found:
            found["steps"].append((step.name, step.seconds))

    def run(name: str, end: int | None, start: Path | None) -> int:
        """Build from the log up to a position, in a lake as it was somewhere; the best counts."""
        if name != "third":
            shutil.rmtree(lake, ignore_errors=True)
            if start is not None:
                shutil.copytree(start, lake)
            with whole.open("rb") as source, (place / SEGMENT).open("wb") as log:
                log.write(source.read(end))
        os.sync()  # what one run wrote is not another's to wait for
        started = time.perf_counter()
        outcome = build(spark, [str(place)], str(lake), cluster_id=_CLUSTER, progress=note)
        took = time.perf_counter() - started
        found[name] = min(found.get(name, took), took)
        return outcome.records

    for _ in range(_FIRST_RUNS):
        run("first", cut, None)
    found["bytes"] = (place / SEGMENT).stat().st_size
    found["lake_bytes"] = sum(each.stat().st_size for each in lake.rglob("*.parquet"))
    shutil.rmtree(before, ignore_errors=True)
    lake.rename(before)
    for _ in range(_SECOND_RUNS):
        found["more"] = run("second", None, before)
    shutil.rmtree(before)
    run("third", None, None)
    spark.stop()
    return found


def warm_up(root: Path) -> Path:
    """A small log, so that what is measured does not begin with loading classes."""
    place = root / "history-warm" / "__cluster_metadata-0"
    shutil.rmtree(root / "history" / "warm", ignore_errors=True)
    if not place.exists():
        place.mkdir(parents=True)
        make_metadata(place / SEGMENT, 20_000)
    return place


def questions(lake: Path) -> dict[str, float]:
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(START_MS / 1000 + 3600, UTC).isoformat()
    topic = a_topic(lake)
    asked = {
        "history as-of LAKE partitions --topic T --at TIME": (
            "as-of",
            "partitions",
            "--topic",
            topic,
        ),
        "history as-of LAKE topics --topic T --at TIME": ("as-of", "topics", "--topic", topic),
    }
    found: dict[str, float] = {}
    for said, (verb, table, *rest) in asked.items():
        command = [sys.executable, "-m", "kraftline", "history", verb, str(lake), table, *rest]
        command += ["--at", when, "--format", "jsonl"]
        best = float("inf")
        for _ in range(_QUESTIONS):
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            best = min(best, time.perf_counter() - started)
        found[said] = best
    return found


def a_topic(lake: Path) -> str:
    from kraftline.lake.lake import Lake

    name: str = Lake.at(str(lake)).dataset("topics")["topic"][0].as_py()
    return name


if __name__ == "__main__":
    main()

"""A metadata log to columns, to typed objects and to JSON lines, beside DumpLogSegments."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.contest import KRAFTLINE, Contender, ours
from benchmarks.data import all_threads, said_threads
from benchmarks.inputs import Made
from benchmarks.plan import Line, Plan, checked, kafka_reads
from benchmarks.rival import dump_command

KAFKA = "DumpLogSegments"


def decoded(plan: Plan) -> Iterator[Line]:
    """Columns and objects, checksums compared; the rival prints JSON to /dev/null."""
    for records in plan.sizes.metadata:
        made = plan.maker.metadata(records)
        if records == plan.sizes.metadata[0]:
            kafka_reads(made, metadata=True)
        else:
            plan.notes.append(_mix(made))
        found = plan.contest(
            {
                "columns": ours("metadata_columns", made.path),
                "threads": ours("metadata_columns", made.path, all_threads()),
                "objects": ours("metadata_objects", made.path),
                "kafka": Contender(dump_command(made.path, metadata=True)),
            }
        )
        kafka = plan.without_start(found["kafka"])
        for name, to, reach, aim in (
            ("columns", "columns, 1 thread", 20, 60),
            ("threads", f"columns, {said_threads(all_threads())}", 20, 60),
            ("objects", "typed objects", 3, 5),
        ):
            us = found[name]
            checked(made, us)
            work = f"metadata to {to}"
            yield Line("metadata", work, said_records(records), us, KAFKA, kafka, reach, aim)


def lines(plan: Plan) -> Iterator[Line]:
    """Whole processes, each writing its JSON to a file."""
    for records in plan.sizes.metadata:
        made = plan.maker.metadata(records)
        ours_to, theirs_to = made.path.with_name("ours.jsonl"), made.path.with_name("theirs.txt")
        found = plan.contest(
            {
                "us": Contender([KRAFTLINE, "dump", "--format", "jsonl", str(made.path)], ours_to),
                "kafka": Contender(dump_command(made.path, metadata=True), theirs_to),
            }
        )
        for written in (ours_to, theirs_to):
            written.unlink()
        work = "metadata to JSON lines, whole process"
        us, kafka = found["us"], found["kafka"]
        yield Line("jsonl", work, said_records(records), us, KAFKA, kafka, 1.5, 4, whole=True)


def small(plan: Plan) -> Iterator[Line]:
    """Start included, both printing to a pipe, as a person at a terminal would wait for it."""
    for records in plan.sizes.small:
        made = plan.maker.metadata(records)
        dump = [KRAFTLINE, "dump", str(made.path)]
        found = plan.contest(
            {
                "table": Contender(dump, pipe=True),
                "kafka": Contender(dump_command(made.path, metadata=True), pipe=True),
                "jsonl": Contender([*dump, "--format", "jsonl"], pipe=True),
            },
            least=5,
        )
        for form in ("table", "jsonl"):
            work = f"dump of a small file as {form}"
            us, kafka = found[form], found["kafka"]
            yield Line("small", work, said_records(records), us, KAFKA, kafka, 4, 8, whole=True)


def said_records(records: int) -> str:
    return f"{records:,} records"


def _mix(made: Made) -> str:
    mix = made.mix
    assert mix is not None
    shares = ", ".join(
        f"{name} {count / made.records:.2%}" for name, count in mix.types.most_common()
    )
    return (
        f"The metadata log of {made.records:,} records has {mix.batches:,} batches of 1 to "
        f"{mix.largest} records, {made.size / made.records:.0f} bytes a record: {shares}."
    )

"""The results as a table on the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.plan import Line, Peak

_HEAD = ("work", "size", "us", "rival", "takes", "quicker", "reach / aim")
_MEMORY = ("work", "small", "peak", "large", "peak")

_INTRO = """\
# Benchmarks

Kraftline beside real Kafka's own reader (and beside pyarrow reading Parquet), on the same files in
the same run: `make bench`. Written by the run; do not edit.

- Best of {rounds} rounds; in each round we and the rival take turns. Every run is a process of its
  own, and its files are in the page cache.
- Work through the library is compared without the starts of either side: ours is timed after the
  imports, and from the rival's time is taken what it needs for a log of one record ({start:.2f} s).
  The column "whole processes" compares all of it, starts included. Dumps are whole processes.
- The rival runs with the fastest of three JVM settings tried (`-Xmx512m -XX:+UseSerialGC`).
- Before anything is timed, real Kafka reads an input of each kind and must agree on every record.
- Rows are counted on our side, and must be all of them. Checksums are compared on both sides.
- DumpLogSegments (`kafka-dump-log`) reads data with `--deep-iteration` and prints a line for each
  record, without key and value; it reads metadata with `--cluster-metadata-decoder` and prints each
  record as JSON. Its output goes to /dev/null; for JSON lines, ours and its go to files; for small
  files, through a pipe.
- "To columns" are all fourteen columns of a record, "to rows" the five that the Parquet file has
  (offset, timestamp, key, value, headers; no compression, no dictionaries).
- Data segments: keys of 16 bytes, values of 100 (JSON with random identifiers and numbers),
  batches of 130 records (16 KB before compression). Sizes are before compression.
"""


def print_lines(console: Console, lines: Sequence[Line]) -> None:
    table = Table(*_HEAD, title="Kraftline beside its rivals")
    for line in lines:
        table.add_row(*row(line), style=_colour(line))
    console.print(table)


def print_peaks(console: Console, peaks: Sequence[Peak]) -> None:
    table = Table(*_MEMORY, title="Peak memory")
    for peak in peaks:
        table.add_row(*_peak_row(peak))
    console.print(table)


def markdown(
    lines: Sequence[Line],
    peaks: Sequence[Peak],
    notes: Sequence[str],
    machine: Mapping[str, str],
    rounds: int,
    kafka_start: float,
) -> str:
    out = [_INTRO.format(rounds=rounds, start=kafka_start).rstrip()]
    out += [f"- {note}" for note in notes]
    out += ["", "## Speed", ""]
    out += _table(
        (*_HEAD, "whole processes", "CPU seconds, us : rival"),
        [
            (
                *row(line),
                f"{line.whole_ratio:.1f}x",
                f"{line.us.cpu:.2f} : {line.rival.cpu:.2f}",
            )
            for line in lines
        ],
    )
    if peaks:
        out += ["", "## Peak memory", "", "Of a whole process that keeps nothing it has read.", ""]
        out += _table(_MEMORY, [_peak_row(peak) for peak in peaks])
    out += ["", "## Machine", ""]
    out += _table(("", ""), list(machine.items()))
    return "\n".join(out) + "\n"


def row(line: Line) -> tuple[str, ...]:
    us = line.us.whole if line.whole else line.us.work
    rival = line.rival.whole if line.whole else line.rival.work
    assert us is not None
    assert rival is not None
    return (
        line.work,
        line.size,
        f"{us:.3f} s",
        line.rival_name,
        f"{rival:.3f} s",
        f"{line.ratio:.2f}x" if line.ratio < 10 else f"{line.ratio:.0f}x",
        f"{line.reach:g} / {line.aim:g}",
    )


def _colour(line: Line) -> str:
    if line.ratio < line.reach:
        return "red"
    return "yellow" if line.ratio < line.aim else "green"


def _peak_row(peak: Peak) -> tuple[str, ...]:
    small, large = (f"{size / 1e6:.0f} MB" for size in peak.peaks)
    return peak.work, peak.sizes[0], small, peak.sizes[1], large


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]

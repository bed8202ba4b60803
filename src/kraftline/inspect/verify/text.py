"""Findings as a person reads them: under the file they are in, each with what it means."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.text import Text

from kraftline.inspect.verify.findings import Finding, Summary
from kraftline.storage.names import METADATA_TOPIC

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class FindingText:
    """Lines for findings as they come; a heading whenever the file changes."""

    def __init__(self, width: int | None) -> None:
        self.width = width
        self.file: str | None = None

    def lines(self, finding: Finding) -> Iterator[Text]:
        if finding.file != self.file:
            if self.file is not None:
                yield Text("")
            self.file = finding.file
            yield Text(finding.file, style="bold")
        head = Text("  ")
        if finding.is_note:
            head.append("note", style="cyan")
        else:
            head.append(finding.code, style="bold red")
        where = place(finding)
        if where:
            head.append(f"  {where}", style="dim")
        yield head
        yield from self._wrapped(finding.problem, "    ", "")
        if finding.meaning and not finding.is_note:
            yield from self._wrapped(f"→ {finding.meaning}", "    ", "yellow")

    def _wrapped(self, text: str, indent: str, style: str) -> Iterator[Text]:
        if self.width is None:
            yield Text(indent + text, style=style)
            return
        rest = indent + ("  " if text.startswith("→") else "")
        for line in textwrap.wrap(
            text, max(self.width, 40), initial_indent=indent, subsequent_indent=rest
        ):
            yield Text(line, style=style)


def place(finding: Finding) -> str:
    """`position 1,234 · offset 17 · record 3`, as far as known."""
    parts = []
    if finding.position is not None:
        parts.append(f"position {finding.position:,}")
    if finding.offset is not None:
        parts.append(f"offset {finding.offset}")
    if finding.record is not None:
        parts.append(f"record {finding.record} of its batch")
    return " · ".join(parts)


def summary_line(summary: Summary) -> Text:
    """The closing line."""
    walked = (
        f"{_count(summary.files, 'file')}, {_count(summary.batches, 'batch', 'batches')}, "
        f"{_count(summary.records, 'record')}, {show_size(summary.bytes)} "
        f"in {summary.seconds:.1f} s"
    )
    line = Text()
    if summary.findings:
        line.append(_count(summary.findings, "finding"), style="bold red")
    else:
        line.append("no findings", style="bold green")
    if summary.notes:
        line.append(f", {_count(summary.notes, 'note')}")
    line.append(f": {walked}")
    if summary.not_shown:
        line.append(f"; {summary.not_shown:,} more of the same kinds not shown (--all shows them)")
    return line


def first_lines(finding: Finding) -> Iterator[Text]:
    """The answer of `--first`: one record, with all that is known."""
    yield Text("The first record that cannot be read:", style="bold")
    yield Text("")
    rows = [
        ("file", finding.file),
        ("position", "" if finding.position is None else f"{finding.position} (of its batch)"),
        ("offset", "" if finding.offset is None else str(finding.offset)),
        ("record", "" if finding.record is None else f"{finding.record} of its batch, from 0"),
        ("code", finding.code),
        ("reason", finding.problem),
        ("bytes", hex_start(finding.start)),
        ("meaning", finding.meaning),
        ("to try", advice(finding)),
    ]
    for name, text in rows:
        if text:
            lines = textwrap.wrap(text, 96) if name != "file" else [text]
            for n, line in enumerate(lines):
                label = Text(f"  {name if n == 0 else '':<10}", style="dim")
                yield label.append(line, style="not dim")


def hex_start(data: bytes) -> str:
    return f"{data.hex(' ')} …" if data else ""


def advice(finding: Finding) -> str:
    """What a person could try, by what could not be read and where."""
    metadata = METADATA_TOPIC in finding.file or finding.file.endswith(".checkpoint")
    if finding.code == "unreadable":
        return "Run as the user that owns the log directory; look for a failing disk (dmesg)."
    if finding.code == "record-type":
        return (
            "A newer Kafka may have written it: start the release that did, or the newest. "
            "If the bytes look random, treat it as damage and restore the replica."
        )
    if finding.file.endswith(".checkpoint"):
        return (
            "Move this snapshot away while the node is down: it then starts from an older "
            "snapshot and the log, or fetches the leader's."
        )
    if metadata:
        return (
            "If other controllers are healthy: stop this node, move its __cluster_metadata-0 "
            "directory away, start it, and it fetches the log from the leader. If this is the "
            "only copy: keep a backup, then `kraftline dump` shows what comes before and after."
        )
    return (
        "If other replicas are in sync: stop the broker, move this partition's directory away, "
        "start it, and it fetches the data again. If this is the only copy: keep a backup, "
        "delete .kafka_cleanshutdown, and Kafka cuts the log right before this place at its "
        "next start."
    )


def show_size(count: float) -> str:
    """`1.5 MB`: decimal units, as Kafka's own tools have none."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:,.0f} {_UNITS[unit]}" if unit == 0 else f"{count:,.1f} {_UNITS[unit]}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"

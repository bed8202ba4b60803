"""`kraftline verify`: check everything, and say what is wrong and where."""

from __future__ import annotations

import csv
import io
from typing import Any

import click
import msgspec
from rich.console import Console

from kraftline.cli.options import PATH, format_option
from kraftline.cli.progress import Bar
from kraftline.errors import NotKafka
from kraftline.inspect.verify import Finding, Summary, total_bytes, verify
from kraftline.inspect.verify.text import FindingText, first_lines, summary_line
from kraftline.storage.files import shown

_MOST = 20
_COLUMNS = (
    "kind",
    "file",
    "code",
    "position",
    "offset",
    "record",
    "problem",
    "meaning",
    "start",
)


@click.command(name="verify")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option("--first", is_flag=True, help="Stop at the first record that cannot be read.")
@click.option("--all", "everything", is_flag=True, help=f"Show all, not {_MOST} a kind and file.")
@format_option
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[str, ...], first: bool, everything: bool, form: str
) -> None:
    """Check files of Kafka's: segments, indexes, snapshots, partition and log directories.

    Batches and records to the last byte, indexes and checkpoints against the logs they speak of,
    and the records of Kafka's own topics. A metadata log is replayed: every snapshot must be what
    the log comes to, and the directories of several nodes must agree. Nothing is changed and no
    lock is taken, so a running broker is not disturbed.

    Exit code 0: nothing wrong; 1: something is; 2: not Kafka's.

    \b
    Examples:
      kraftline verify /var/lib/kafka
      kraftline verify --first /var/lib/kafka/__cluster_metadata-0
      kraftline verify node-1/__cluster_metadata-0 node-2/__cluster_metadata-0
      kraftline verify orders-0/00000000000000000000.log --format jsonl
    """
    printer = _PRINTERS[form](first)
    with Bar(lambda: total_bytes(paths), "checking") as bar:
        try:
            summary = verify(
                paths,
                lambda finding: bar.aside(lambda: printer.finding(finding)),
                progress=bar.advance,
                first=first,
                most=None if everything else _MOST,
            )
        except NotKafka as error:
            click.echo(f"kraftline: {error}", err=True)
            ctx.exit(2)
    printer.finish(summary)
    ctx.exit(1 if summary.findings else 0)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end with 1


class _Table:
    def __init__(self, first: bool) -> None:
        self.console = _Console(highlight=False, soft_wrap=True)
        width = min(self.console.width, 110) if self.console.is_terminal else None
        self.text = FindingText(width)
        self.first = first
        self.any = False

    def finding(self, finding: Finding) -> None:
        self.any = True
        for line in first_lines(finding) if self.first else self.text.lines(finding):
            self.console.print(line)

    def finish(self, summary: Summary) -> None:
        if self.first and not self.any:
            self.console.print("Every record can be read.")
        elif self.any:
            self.console.print()
        self.console.print(summary_line(summary))


class _Json:
    def __init__(self, first: bool) -> None:
        self.found: list[dict[str, Any]] = []

    def finding(self, finding: Finding) -> None:
        self.found.append(_plain(finding))

    def finish(self, summary: Summary) -> None:
        parts = {
            kind + "s": [
                {k: v for k, v in f.items() if k != "kind"} for f in self.found if f["kind"] == kind
            ]
            for kind in ("finding", "note")
        }
        whole = parts | {"summary": msgspec.to_builtins(summary)}
        click.echo(msgspec.json.format(msgspec.json.encode(whole), indent=2))


class _JsonLines:
    def __init__(self, first: bool) -> None:
        pass

    def finding(self, finding: Finding) -> None:
        click.echo(msgspec.json.encode(_plain(finding)))

    def finish(self, summary: Summary) -> None:
        click.echo(msgspec.json.encode({"kind": "summary"} | msgspec.to_builtins(summary)))


class _Csv:
    def __init__(self, first: bool) -> None:
        self._row(_COLUMNS)

    def finding(self, finding: Finding) -> None:
        plain = _plain(finding)
        self._row([plain[column] for column in _COLUMNS])

    def finish(self, summary: Summary) -> None:
        pass

    def _row(self, cells: Any) -> None:
        out = io.StringIO()
        csv.writer(out, lineterminator="").writerow(cells)
        click.echo(out.getvalue())


_PRINTERS: dict[str, type[_Table | _Json | _JsonLines | _Csv]] = {
    "table": _Table,
    "json": _Json,
    "jsonl": _JsonLines,
    "csv": _Csv,
}


def _plain(finding: Finding) -> dict[str, Any]:
    """A finding as data; the start of what could not be read is hexadecimal."""
    return {
        "kind": "note" if finding.is_note else "finding",
        "file": shown(finding.file),
        "code": finding.code,
        "position": finding.position,
        "offset": finding.offset,
        "record": finding.record,
        "problem": shown(finding.problem),
        "meaning": finding.meaning or None,
        "start": finding.start.hex() or None,
    }

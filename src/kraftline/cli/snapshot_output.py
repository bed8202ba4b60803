"""What `kraftline snapshot` says of the file that it wrote."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from kraftline.inspect.history import show_time
from kraftline.inspect.snapshots import Edited, Written


def show_written(
    form: str,
    written: Written,
    notes: Sequence[str],
    lost: Sequence[str] = (),
    quorum: Sequence[str] = (),
) -> None:
    if form == "table":
        _file(written)
        _lines("Lost", lost)
        _lines("Different", quorum)
        _lines("Note", notes)
    elif form == "csv":
        _csv(("type", "records"), written.records.items())
    else:
        told = {"lost": list(lost), "notes": list(notes), "voters_changed": list(quorum)}
        _json(form, {**_plain(written), **told})


def show_edited(form: str, edited: Edited, written: Written) -> None:
    changes = [change for change in edited.changes if not change.minor]
    notes = edited.state.notes
    if form == "table":
        said = [*edited.quorum, *(change.text for change in changes)]
        _lines("Different", said or ["nothing: it was so already"])
        _file(written)
        _lines("Note", notes)
    elif form == "csv":
        rows = [(c.kind, c.subject, c.text) for c in changes]
        _csv(("kind", "subject", "text"), [*(("voters", "", t) for t in edited.quorum), *rows])
    else:
        told = [msgspec.to_builtins(change) for change in edited.changes]
        whole = {**_plain(written), "notes": list(notes)}
        if form == "jsonl":
            for change in told:
                _json(form, {"row": "change", **change})
            _json(form, {"row": "snapshot", **whole, "voters_changed": list(edited.quorum)})
        else:
            _json(form, {**whole, "changes": told, "voters_changed": list(edited.quorum)})


def _file(written: Written) -> None:
    end, epoch = written.id.end_offset, written.id.epoch
    click.echo(f"{written.path}: {written.size:,} bytes")
    click.echo(
        f"  the state below offset {end} (last record {end - 1}, "
        f"{show_time(written.log_time)}), leader epoch {epoch}"
    )
    quorum = f"metadata.version {written.metadata_version}, kraft.version {written.kraft_version}"
    if written.voters:
        quorum += f", voters {', '.join(map(str, written.voters))}"
    click.echo(f"  {quorum}")
    width = max(map(len, written.records), default=0)
    for name, count in sorted(written.records.items()):
        click.echo(f"  {name:<{width}}  {count:>9,}")
    click.echo(f"  {'in all':<{width}}  {sum(written.records.values()):>9,}")
    if os.path.basename(written.path) != written.kafka_name:
        click.echo(f"  Kafka takes it only under the name {written.kafka_name}")


def _lines(head: str, lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(f"{head}: {line}")


def _plain(written: Written) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(written)
    return {**plain, "kafka_name": written.kafka_name}


def _json(form: str, value: dict[str, Any]) -> None:
    data = msgspec.json.encode(value)
    click.echo(msgspec.json.format(data, indent=2) if form == "json" else data)


def _csv(head: Sequence[str], rows: Any) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    click.echo(out.getvalue(), nl=False)

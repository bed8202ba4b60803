"""Rows of a dump for people: a line each, under a heading per file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET

from kraftline.inspect.dump.rows import Header, Row

_COLOUR = {"dim": "2", "type": "36", "name": "34", "key": "33", "mark": "35", "problem": "31"}
_COLUMNS = Row.__struct_encode_fields__


class Painter:
    """Adds colour where there is any, and cuts lines where there is a width."""

    def __init__(self, colour: bool, width: int | None) -> None:
        self.colour = colour
        self.width = width

    def line(self, pieces: Iterable[tuple[str, str]]) -> str:
        """A line of (style, text) pieces; what is cut off leaves an ellipsis."""
        if self.width is None and not self.colour:
            return "".join([text for _, text in pieces])
        whole = list(pieces)
        length = sum(len(text) for _, text in whole)
        width = length if self.width is None else self.width
        room = length if length <= width else width - 1
        out = []
        for style, text in whole:
            shown = text[:room]
            room -= len(shown)
            code = _COLOUR.get(style)
            out.append(f"\x1b[{code}m{shown}\x1b[0m" if self.colour and code else shown)
            if room <= 0:
                break
        return "".join(out) + ("…" if length > width else "")


def table(
    rows: Iterable[Row], painter: Painter, type_of: Callable[[Row], str | None]
) -> Iterator[str]:
    """Lines of text, without their ends. `type_of` names the type of a typed record."""
    file = None
    for row in rows:
        if row.file != file:
            if file is not None:
                yield ""
            file = row.file
            yield painter.line([("dim", "── "), ("", show_text(file))])
            yield painter.line([("dim", f"{'offset':>10}  {'time (UTC)':<23}  record")])
        yield painter.line(_pieces(row, type_of(row)))


def _pieces(row: Row, kind: str | None) -> Iterator[tuple[str, str]]:
    yield "", f"{row.offset:>10}  "
    yield "dim", f"{show_time(row.timestamp):<23}  "
    marks = [row.codec] if row.codec != "none" else []
    if row.is_control:
        marks.append("control")
    elif row.is_transactional:
        marks.append(f"txn {row.producer_id}/{row.producer_epoch}")
    if marks:
        yield "mark", f"[{' '.join(marks)}] "
    if row.problem is not UNSET:
        yield "problem", f"! {row.problem}  "
    if kind is not None:
        yield "type", kind
    if isinstance(row.key_payload, dict):
        yield from _payload(row.key_payload)
        yield "dim", " → "
    if isinstance(row.payload, dict) and "data" in row.payload:
        yield from _payload(row.payload)
    elif row.payload is None:
        yield "mark", "deleted"
    else:
        if kind is not None and row.key_payload is UNSET:
            yield "", " "
        if row.key is not None and row.key_payload is UNSET:
            yield "key", f"{show_bytes(row.key)}"
            yield "dim", ": "
        yield "", "null" if row.value is None else show_bytes(row.value)
    for header in row.headers:
        yield from _header(header)


def _header(header: Header) -> Iterator[tuple[str, str]]:
    value = "null" if header.value is None else show_bytes(header.value)
    yield "dim", f"  {show_text(header.key)}="
    yield "", value


def _payload(payload: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """` v0 name=orders topicId=…`."""
    if "version" in payload:
        yield "dim", f" v{payload['version']}"
    data = payload.get("data")
    if isinstance(data, dict):
        for field, value in data.items():
            yield "name", f" {field}="
            text = isinstance(value, str)
            yield "", show_text(value) if text else msgspec.json.encode(value).decode()


def show_time(timestamp: int) -> str:
    """A time of Kafka's for people; -1 is none."""
    if timestamp == -1:
        return "no timestamp"
    try:
        when = datetime.fromtimestamp(timestamp / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp)
    return f"{when:%Y-%m-%d %H:%M:%S}.{timestamp % 1000:03d}"


def show_text(text: str) -> str:
    """As it is, or in quotes where it would break the line or steer the terminal."""
    return text if text.isprintable() else repr(text)


def show_bytes(data: bytes) -> str:
    """Text where it is text, else hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else f"0x{data.hex()}"


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Comma-separated values with a line of names; bytes in base64, payloads as JSON."""
    yield _csv(_COLUMNS)
    for row in rows:
        plain = msgspec.to_builtins(row)
        yield _csv([csv_cell(plain.get(column)) for column in _COLUMNS])


def csv_cell(value: object) -> object:
    """A value as a cell: truths, lists and objects as JSON has them."""
    as_json = isinstance(value, bool | dict | list | tuple)
    return msgspec.json.encode(value).decode() if as_json else value


def _csv(cells: Iterable[object]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()

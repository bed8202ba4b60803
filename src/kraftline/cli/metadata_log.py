"""What the verbs on a metadata log share: opening it, moments, what was wrong, exit codes."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from kraftline.errors import NotKafka

if TYPE_CHECKING:
    from kraftline.inspect.cluster.layout import Pen
    from kraftline.inspect.history import History
    from kraftline.inspect.moments import Moment

_MOST = 10
# Written together: one call for each line takes longer than making it.
_LINES = 256
_Command = TypeVar("_Command", bound=Callable[..., object])


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> Moment | None:
    """An option's value as an offset or a time."""
    from kraftline.inspect.moments import parse_moment

    if value is None:
        return None
    try:
        return parse_moment(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def quick_option(command: _Command) -> _Command:
    return click.option(
        "--quick",
        is_flag=True,
        help="Start at the newest snapshot before the moment, as a restarting node would.",
    )(command)


@contextmanager
def opened(paths: Sequence[str]) -> Iterator[History]:
    """A history; what is wrong with it is said at the end, and decides the exit code."""
    from kraftline.cli.progress import Bar
    from kraftline.inspect.history import Unanswerable, open_history
    from kraftline.metadata.loader import without_collector

    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        bar.update(done)

    try:
        with without_collector():
            with Bar(log_bytes(paths), "reading") as bar:
                history = open_history(paths, advance)
            yield history
    except (NotKafka, Unanswerable) as error:
        click.echo(f"kraftline: {error}", err=True)
        sys.exit(2)
    sys.stdout.flush()
    sys.exit(1 if say_trouble(history) else 0)


@contextmanager
def working(history: History, *, streaming: bool = False) -> Iterator[None]:
    """Show how a replay gets on; `streaming` if lines are written meanwhile."""
    from kraftline.cli.progress import Bar

    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        bar.update(done)

    with Bar(history.size, "replaying", quiet=streaming and sys.stdout.isatty()) as bar:
        history.progress = advance
        try:
            yield
        finally:
            history.progress = None


def log_bytes(paths: Sequence[str]) -> int:
    """How much there is to read; snapshots are not counted as they are read, nor here."""
    total = 0
    for path in paths:
        folder = os.path.join(path, "__cluster_metadata-0")
        where = folder if os.path.isdir(folder) else path
        if os.path.isdir(where):
            with os.scandir(where) as entries:
                total += sum(e.stat().st_size for e in entries if e.name.endswith(".log"))
        elif os.path.exists(where) and not where.endswith(".checkpoint"):
            total += os.path.getsize(where)
    return total


def say_trouble(history: History) -> bool:
    """Tell on stderr what was wrong; whether any of it makes the answer doubtful."""
    found = list(dict.fromkeys(history.trouble))
    for trouble in found[:_MOST]:
        click.echo(f"kraftline: {trouble}", err=True)
    if len(found) > _MOST:
        click.echo(f"kraftline: … and {len(found) - _MOST:,} more like these", err=True)
    return any(not trouble.harmless for trouble in found)


def wrong_use(text: str) -> NoReturn:
    click.echo(f"kraftline: {text}", err=True)
    sys.exit(2)


def pen() -> Pen:
    """Colour on a terminal that wants it."""
    from kraftline.inspect.cluster.layout import Pen

    return Pen(sys.stdout.isatty() and "NO_COLOR" not in os.environ)


def write_lines(lines: Iterable[str]) -> None:
    """Many lines to standard output, quickly; whatever bytes a name was made of."""
    out = sys.stdout.buffer
    source = iter(lines)
    while chunk := list(islice(source, _LINES)):
        out.write("\n".join([*chunk, ""]).encode(errors="surrogatepass"))
    out.flush()


def write_rows(
    rows: Iterable[Mapping[str, Any]], form: str, columns: Sequence[str] | None = None
) -> None:
    """Rows as json, jsonl or csv; columns of csv are those of the first row unless given."""
    import msgspec

    out = sys.stdout.buffer
    if form == "jsonl":
        encode = msgspec.json.Encoder().encode
        source = iter(rows)
        while chunk := list(islice(source, _LINES)):
            out.write(b"\n".join([*map(encode, chunk), b""]))
    elif form == "json":
        text = msgspec.json.encode(list(rows))
        out.write(msgspec.json.format(text, indent=2) + b"\n")
    else:
        _csv(rows, columns)
    out.flush()


def write_object(value: object) -> None:
    """One value as json."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.buffer.flush()


def _csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None) -> None:
    from kraftline.inspect.dump.text import csv_cell

    source = iter(rows)
    first = list(islice(source, 1))
    names = list(columns or (first[0] if first else ()))
    cells = ([csv_cell(row.get(name)) for name in names] for row in chain(first, source))
    found: Iterator[list[Any]] = chain([names], cells)
    while lines := list(islice(found, _LINES)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        sys.stdout.buffer.write(text.getvalue().encode(errors="surrogatepass"))

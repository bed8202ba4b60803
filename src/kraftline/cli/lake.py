"""What the verbs on a lake share: opening it, options, tables for people, exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kraftline.cli import metadata_log
from kraftline.errors import KraftlineError

if TYPE_CHECKING:
    from kraftline.lake.lake import Lake
    from kraftline.lake.queries import Chosen

_Command = TypeVar("_Command", bound=Callable[..., object])


def cluster_option(command: _Command) -> _Command:
    return click.option(
        "--cluster", "clusters", multiple=True, help="Only of this cluster; else of all."
    )(command)


def topic_option(command: _Command) -> _Command:
    return click.option("--topic", "topics", multiple=True, help="Only of this topic (* matches).")(
        command
    )


def broker_option(command: _Command) -> _Command:
    return click.option(
        "--broker", "brokers", multiple=True, type=int, help="Only with this broker in it."
    )(command)


def kind_option(example: str) -> Callable[[_Command], _Command]:
    def option(command: _Command) -> _Command:
        return click.option(
            "--type", "kinds", multiple=True, help=f"Only of this kind: {example}, …"
        )(command)

    return option


@contextmanager
def opened(path: str) -> Iterator[Lake]:
    """The newest build of a lake. What cannot be asked is wrong use."""
    try:
        from kraftline.lake.coverage import NoAnswer
        from kraftline.lake.lake import Lake
    except ModuleNotFoundError as error:
        raise KraftlineError(f"a lake needs {error.name}: pip install 'kraftline[lake]'") from None
    try:
        lake = Lake.at(path)
    except KraftlineError as error:
        metadata_log.wrong_use(str(error))
    try:
        yield lake
    except NoAnswer as error:
        metadata_log.wrong_use(str(error))


def say(notes: Iterable[str]) -> None:
    """What to know of an answer; it is not part of it."""
    for note in notes:
        click.echo(f"kraftline: {note}", err=True)


def say_unknown(lake: Lake, table: str, chosen: Chosen) -> None:
    """Why an answer may be empty: what was chosen by is nowhere in the lake."""
    from kraftline.lake.questions import never_seen

    say(never_seen(lake, table, chosen))


def write_table(columns: Mapping[str, Callable[[Any], str]], rows: Sequence[Any]) -> None:
    """Rows for people: a name and a cell for each column."""
    from kraftline.inspect.cluster.layout import table

    if not rows:
        click.echo("none")
        return
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    metadata_log.write_lines(table(list(columns), cells, metadata_log.pen()))
    sys.stdout.flush()

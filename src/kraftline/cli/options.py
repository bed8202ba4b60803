"""Options and values that several verbs take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import click

FORMATS = ("table", "json", "jsonl", "csv")
# Shells complete it; what is wrong with a path, whoever opens it says.
PATH = click.Path(readable=False)
_Command = TypeVar("_Command", bound=Callable[..., object])


def format_option(command: _Command) -> _Command:
    """`--format table|json|jsonl|csv`, the same for every verb that prints data."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="A table for people; the others for programs.",
    )(command)


def instant(
    ctx: click.Context | None, param: click.Parameter | None, value: str | None
) -> int | None:
    """A time as ISO-8601 (UTC unless it says otherwise), in milliseconds since 1970."""
    if value is None:
        return None
    try:
        when = datetime.fromisoformat(value.strip())
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a time; give it like 2026-03-01T03:12:00Z", ctx, param
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)

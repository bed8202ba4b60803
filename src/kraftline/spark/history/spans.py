"""From events that turn something on and off to the time that it was on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """`what` is told of a span that begins with it."""

    at_offset: int
    at_time: int | None
    is_on: bool
    what: Any


def spans(turns: Iterable[Turn]) -> Iterator[tuple[Turn, Turn | None]]:
    """Each turn that begins something, and the one that ends it; of several at one offset only
    the last counts."""
    last: dict[int, Turn] = {}
    for turn in turns:
        last[turn.at_offset] = turn
    begun: Turn | None = None
    for turn in last.values():
        if turn.is_on and begun is None:
            begun = turn
        elif not turn.is_on and begun is not None:
            yield begun, turn
            begun = None
    if begun is not None:
        yield begun, None

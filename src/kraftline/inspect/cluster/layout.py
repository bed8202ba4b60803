"""Plain tables and trees for people: as wide as they need, colour only where it is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_BOLD, _DIM, _END = "\033[1m", "\033[2m", "\033[0m"


class Pen:
    """Emphasis on a terminal; elsewhere, text as it is."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def bold(self, text: str) -> str:
        return f"{_BOLD}{text}{_END}" if self._colour else text

    def dim(self, text: str) -> str:
        return f"{_DIM}{text}{_END}" if self._colour else text


def table(
    names: Sequence[str], rows: Iterable[Sequence[str]], pen: Pen, *, right: Sequence[str] = ()
) -> Iterator[str]:
    """Columns beside each other, two spaces apart; the last is never padded."""
    found = [list(row) for row in rows]
    widths = [max([len(name), *(len(row[at]) for row in found)]) for at, name in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        said = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(cells, widths, names, strict=True)
        ]
        return "  ".join(said).rstrip()

    yield pen.dim(line(names))
    for row in found:
        yield line(row)


def tree(value: Any, name: str = ".") -> Iterator[str]:
    """Maps as branches, everything else as leaves. A branch may also be a function that makes the
    map once it is its turn."""
    yield name
    yield from _branches(value, "")


def _branches(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    items = list(value.items())
    for at, (name, below) in enumerate(items):
        last = at == len(items) - 1
        corner, more = ("└── ", "    ") if last else ("├── ", "│   ")
        below = below() if callable(below) else below
        if isinstance(below, Mapping):
            yield f"{indent}{corner}{name}"
            yield from _branches(below, indent + more)
        else:
            yield f"{indent}{corner}{name}: {leaf(below)}"


def leaf(value: Any) -> str:
    """A value of a row as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(leaf, value)) or "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "-"
    return str(value)

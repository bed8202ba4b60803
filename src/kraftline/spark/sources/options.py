"""What the options of all data sources have in common."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kraftline.errors import KraftlineError

SPLIT_BYTES: Final = 64 * 1024 * 1024


class BadOption(KraftlineError):
    """An option that is not known, or a value that it does not take."""


def known_options(
    source: str,
    given: Mapping[str, str],
    names: Sequence[str],
    also: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The options as Spark hands them over, whatever the case of their names; `also` are other
    spellings (in lower case)."""
    known = {name.lower(): name for name in names} | dict(also or {})
    found: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, 1)
            hint = f"; did you mean {known[near[0]]}?" if near else f": {', '.join(names)}"
            raise BadOption(f"{source} has no option {name}{hint}")
        found[known[name.lower()]] = value
    return found


def paths_of(source: str, found: Mapping[str, str]) -> tuple[str, ...]:
    paths = [found["path"]] if found.get("path") else []
    if found.get("paths"):  # what `load([…])` becomes
        paths += msgspec.json.decode(found["paths"], type=list[str])
    if not paths:
        raise BadOption(f'{source} needs a path: spark.read.format("{source}").load(…)')
    return tuple(map(_plain, paths))


def _plain(path: str) -> str:
    """A URL of this machine's own files as a path: what is local can be followed as it grows."""
    return path.removeprefix("file://") if path.startswith("file:///") else path


def one_of(found: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """One of the values, of which the first is the default."""
    value = found.get(name, values[0]).lower()
    if value not in values:
        raise BadOption(f"{name} is {found[name]!r}, where it may be {' or '.join(values)}")
    return value


def number(found: Mapping[str, str], name: str, least: int = 0) -> int | None:
    text = found.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise BadOption(f"{name} is {text!r}, where a number from {least} on is expected")
    return int(text)

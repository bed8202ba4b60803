"""Java's properties files, read and written as `java.util.Properties` does: Latin-1, `\\uXXXX`,
lines that go on after a backslash, `key=value`, `key:value` and `key value`.

Small, since a node reads one before it does anything else: the libraries for it bring an XML parser
and take longer to import than all the rest of a start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

_BLANK: Final = " \t\f"
_ESCAPE: Final = re.compile(r"\\(u.{0,4}|.|$)", re.S)
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SHORT: Final = {letter: f"\\{name}" for name, letter in _NAMED.items()}
_SPECIAL: Final = frozenset("=:#!\\")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
# A key ends at the first separator that is not escaped.
_KEY: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.S)


def read_properties(data: bytes) -> dict[str, str]:
    """The last value of each key. ValueError where an escape makes no sense."""
    found: dict[str, str] = {}
    for line in _lines(data.decode("latin-1")):
        match = _KEY.match(line)
        assert match is not None
        found[_unescaped(match[1])] = _unescaped(line[match.end() :])
    return found


def _lines(text: str) -> Iterator[str]:
    """Logical lines, without comments and empty ones."""
    natural = iter(re.split(r"\r\n|\r|\n", text))
    for start in natural:
        line = start.lstrip(_BLANK)
        if not line or line[0] in "#!":
            continue
        while _goes_on(line):
            line = line[:-1] + next(natural, "").lstrip(_BLANK)
        if line:
            yield line


def _goes_on(line: str) -> bool:
    """Does it end with a backslash that is not itself escaped?"""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    # A letter beyond 16 bits is written as two escapes.
    units = _ESCAPE.sub(_escaped, text).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "surrogatepass")


def _escaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[:1] != "u":
        return _NAMED.get(escape, escape)
    if not re.fullmatch(r"u[0-9a-fA-F]{4}", escape):
        raise ValueError("Malformed \\uxxxx encoding.")
    return chr(int(escape[1:], 16))


def format_properties(properties: Mapping[str, str], now: datetime | None = None) -> bytes:
    """A file as Java writes it, with an empty comment and the time first."""
    now = datetime.now().astimezone() if now is None else now
    # Java's English names, whatever the locale; a time without a zone is taken as it is.
    zone = f"{now.tzname()} " if now.tzname() else ""
    day, month = _DAYS[now.weekday()], _MONTHS[now.month - 1]
    lines = ["#", f"#{day} {month} {now:%d %H:%M:%S} {zone}{now.year}"]
    lines += [f"{_escape(key, ' ')}={_escape(value)}" for key, value in properties.items()]
    return ("\n".join(lines) + "\n").encode("latin-1")


def _escape(text: str, more: str = "") -> str:
    """In a value only the first blank must be escaped; in a key each."""
    out = []
    for at, letter in enumerate(text):
        if letter in _SHORT:
            out.append(_SHORT[letter])
        elif letter in _SPECIAL or letter in more or (letter == " " and at == 0):
            out.append(f"\\{letter}")
        elif letter <= "\xff":  # as it is: Kafka's files have no escapes for these
            out.append(letter)
        else:
            units = letter.encode("utf-16-be")
            out += [f"\\u{units[n] << 8 | units[n + 1]:04X}" for n in range(0, len(units), 2)]
    return "".join(out)

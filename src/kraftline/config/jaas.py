"""JAAS entries, as `sasl.jaas.config` has them: `class flag key="value" ... ;`, read as Kafka's own
parser reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/            # nothing
      |"(?P<double>(?:\\.|[^"\\\n])*)"?
      |'(?P<single>(?:\\.|[^'\\\n])*)'?
      |(?P<number>-?[\d.]+)
      |(?P<word>[^\W\d][\w.$\-]*|\$[\w.$\-]*)
      |(?P<sign>.)""",
    re.X | re.S,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.S)
_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class BadJaas(ValueError):
    """What Kafka would say of it."""


class JaasEntry(msgspec.Struct, frozen=True):
    """A login module and its options."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module}, [hidden])"


def read_jaas(text: str) -> list[JaasEntry]:
    """The entries of a text, at least one."""
    tokens = _tokens(text)
    entries = []
    for is_text, module in tokens:
        _, flag = next(tokens, (False, ""))
        if not flag:
            raise BadJaas("Login module control flag not specified in JAAS config")
        if flag.upper() not in _FLAGS:
            raise BadJaas(f"Invalid login module control flag '{flag}' in JAAS config")
        entries.append(JaasEntry(module if is_text else "null", _options(tokens)))
    if not entries:
        raise BadJaas("Login module not specified in JAAS config")
    return entries


def _options(tokens: Iterator[tuple[bool, str]]) -> dict[str, str]:
    options: dict[str, str] = {}
    for is_text, key in tokens:
        if (is_text, key) == (False, ";"):
            return options
        equals, value = next(tokens, None), next(tokens, None)
        if equals != (False, "=") or value is None or not value[0]:
            named = key if is_text else "null"
            raise BadJaas(f"Value not specified for key '{named}' in JAAS config")
        options[key] = value[1]
    raise BadJaas("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Words and quoted texts (true), and signs and numbers, which are no values."""
    for match in _TOKEN.finditer(text):
        match match.lastgroup:
            case "double" | "single" as kind:
                yield True, _ESCAPE.sub(_unescaped, match[kind])
            case "word":
                yield True, match["word"]
            case "sign" | "number" as kind:
                yield False, match[kind]


def _unescaped(match: re.Match[str]) -> str:
    said = match[1]
    return chr(int(said, 8)) if said[0].isdigit() and said[0] < "8" else _CONTROLS.get(said, said)

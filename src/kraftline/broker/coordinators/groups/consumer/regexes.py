"""Regular expressions that members subscribe to: checked when they come, matched in a thread.

RE2 as in Kafka, so that no expression takes long: time grows with the name and no faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import re2  # type: ignore[import-untyped]  # it comes without types

from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False  # a client's mistakes are told to the client
# What Kafka's RE2 says where this one says it otherwise.
_SAID: Final[Mapping[str, str]] = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def check(regex: str) -> None:
    """A Refusal where it is none."""
    try:
        _compiled(regex)
    except re2.error as problem:
        raise Refusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: "
            f"{_described(problem)}.",
        ) from problem


def matched(regexes: Iterable[str], names: Iterable[str]) -> dict[str, set[str]]:
    """The names that each of them matches as a whole; none where it cannot be read."""
    found: dict[str, set[str]] = {}
    patterns = []
    for regex in regexes:
        found[regex] = set()
        try:
            patterns.append((_compiled(regex), found[regex]))
        except re2.error:
            continue  # written by a release that takes more
    for name in names:
        for pattern, topics in patterns:
            if pattern.fullmatch(name) is not None:
                topics.add(name)
    return found


def _compiled(regex: str) -> Any:
    return re2.compile(regex, _OPTIONS)


def _described(problem: Exception) -> str:
    said = problem.args[0]
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    text, _, where = text.partition(": ")
    if where.startswith("(?<"):
        return "invalid named capture"  # it takes all that begins so for one
    return _SAID.get(text, text)

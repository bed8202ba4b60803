"""The JSON form as text, letter for letter as Kafka's tools (Jackson) print it.

Python's own encoder differs in two things: how it writes doubles, and the case of escapes.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# What calls for the slow way; a string that only looks like it goes there too, unharmed.
_RARE = re.compile(r"\\u00[01][a-f]|[0-9](\.[0-9]|e)|NaN|Infinity")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|.)")  # one after the other: \\u001f is a backslash


def json_text(form: Any) -> str:
    """Compact JSON text of what `to_json` and its like return."""
    text = _dumps(form)
    return _slow_text(form) if _RARE.search(text) else text


def _slow_text(form: Any) -> str:
    if isinstance(form, dict):
        pairs = (f"{_slow_text(name)}:{_slow_text(value)}" for name, value in form.items())
        return f"{{{','.join(pairs)}}}"
    if isinstance(form, list | tuple):
        return f"[{','.join(map(_slow_text, form))}]"
    if isinstance(form, float):
        return double_text(form)
    if isinstance(form, str):
        return _ESCAPE.sub(_upper, _dumps(form))
    return _dumps(form)


def _upper(escape: re.Match[str]) -> str:
    return rf"\u{escape[1].upper()}" if escape[1] else escape[0]


def double_text(value: float) -> str:
    """A double as Java writes it: plain from 0.001 up to 10 million, else with an exponent.

    Of the digits that name the same double, these are the fewest; Java before 19 sometimes
    writes more of them.
    """
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    power = len(text) - 1 + int(exponent)
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"

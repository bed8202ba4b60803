"""JSON as text is what Jackson prints, which is what Kafka's tools print."""

from __future__ import annotations

import json

import pytest

from kraftline.schema.jsontext import double_text, json_text

# Left: the double; right: what Jackson printed for it under Java 17.
DOUBLES = [
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (-1.5, "-1.5"),
    (0.001, "0.001"),
    (0.00099, "9.9E-4"),
    (1e7, "1.0E7"),
    (9999999.0, "9999999.0"),
    (12345678.9, "1.23456789E7"),
    (1e21, "1.0E21"),
    (1.5e-7, "1.5E-7"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (123456.789, "123456.789"),
    (1048576.0, "1048576.0"),
    (1e16, "1.0E16"),
    (float("nan"), '"NaN"'),
    (float("inf"), '"Infinity"'),
    (float("-inf"), '"-Infinity"'),
    (5e-5, "5.0E-5"),
    (3.3333333333333335, "3.3333333333333335"),
]


@pytest.mark.parametrize(("value", "text"), DOUBLES)
def test_doubles(value: float, text: str) -> None:
    assert double_text(value) == text
    assert json_text({"value": [value, 1]}) == f'{{"value":[{text},1]}}'


def test_strings() -> None:
    everything = "".join(map(chr, range(0x20))) + '"\\/\x7f\x80é\u2028🔑'
    assert json_text(everything) == (
        r'"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000B\f\r\u000E\u000F\u0010'
        r"\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001A\u001B\u001C\u001D\u001E"
        r"\u001F\"\\/" + '\x7f\x80é\u2028🔑"'
    )


def test_a_string_that_looks_like_a_number_or_an_escape_is_left_alone() -> None:
    for text in ("1.5e9", r"\u001f", r"\\u001f", "NaN", '"Infinity"'):
        assert json.loads(json_text({"a": text, "b": 1})) == {"a": text, "b": 1}
    assert json_text(r"\u001f") == r'"\\u001f"'

"""Properties files are read and written as Java does; another library is the second opinion."""

from __future__ import annotations

from datetime import UTC, datetime

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.config.properties import format_properties, read_properties

PIECES = [
    "a",
    "key",
    " ",
    "\t",
    "=",
    ":",
    "\\",
    "\n",
    "\r\n",
    "#",
    "!",
    "\\u0041",
    "\xe9",
    "\\n",
    "x",
]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_read_as_the_library_reads_it(text: str) -> None:
    assert read_properties(text.encode("latin-1")) == javaproperties.loads(text)


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=4))
def test_what_is_written_is_read_again(found: dict[str, str]) -> None:
    data = format_properties(found)
    assert javaproperties.loads(data.decode("latin-1")) == found


def test_the_first_lines_are_java_s() -> None:
    data = format_properties({"a b": " c d"}, datetime(2026, 11, 5, 3, 4, 5, tzinfo=UTC))
    assert data == b"#\n#Thu Nov 05 03:04:05 UTC 2026\na\\ b=\\ c d\n"


def test_an_escape_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="Malformed"):
        read_properties(b"a=\\u12")

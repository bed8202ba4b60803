"""Runs that are not measured because they seem to be like the one before: the same columns and the
same complaints as of runs that are."""

from __future__ import annotations

import io
from types import ModuleType

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftline.errors import BadData
from kraftline.records import column_reader
from kraftline.records.arrow import Alike, columns_of, decode_columns
from kraftline.records.record import Codec, Record, TimestampType
from kraftline.records.runs import prepare
from kraftline.records.write import build_batch

HEAD = 61  # bytes before the records of a batch
few = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
texts = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=200, max_size=300))
headers = st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=4)), max_size=2)
plain_headers: st.SearchStrategy[list[tuple[str, bytes]]] = st.one_of(
    st.just([]), st.just([]), headers
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    count = draw(st.integers(1, 6))
    records = [
        Record(i, draw(st.integers(0, 300)), draw(texts), draw(texts), tuple(draw(plain_headers)))
        for i in range(count)
    ]
    codec = draw(st.sampled_from((Codec.NONE, Codec.NONE, Codec.ZSTD, Codec.LZ4)))
    kind: TimestampType = draw(st.sampled_from(("CreateTime", "LogAppendTime")))
    return build_batch(records, codec=codec, timestamp_type=kind, log_append_time=77)


def read(data: bytes, chunk: int) -> tuple[pa.Table, list[str]]:
    problems: list[BadData] = []
    parts = column_reader.read_columns(
        io.BytesIO(data), check_crc=False, on_error=problems.append, chunk=chunk
    )
    tables = [pa.Table.from_batches([part]) for part in parts]
    for table in tables:
        table.validate(full=True)
    found = pa.concat_tables(tables) if tables else pa.table({})
    return found, list(map(str, problems))


def measured(data: list[bytes]) -> tuple[pa.Table, list[str]]:
    problems: list[BadData] = []
    tables, position = [], 0
    for batch in data:
        part = decode_columns(batch, position=position, check_crc=False, on_error=problems.append)
        if part.num_rows:
            tables.append(pa.Table.from_batches([part]))
        position += len(batch)
    return (pa.concat_tables(tables) if tables else pa.table({})), list(map(str, problems))


@few
@given(st.lists(batches(), min_size=1, max_size=8), st.integers(1, 3))
def test_batches_of_all_shapes_are_what_they_are_when_measured(
    kernel: ModuleType, data: list[bytes], together: int
) -> None:
    whole = b"".join(data)
    found, problems = read(whole, chunk=together * max(map(len, data)))
    assert not problems
    assert found.equals(measured(data)[0])


@few
@given(st.data())
def test_damaged_records_are_complained_of_as_when_measured(
    kernel: ModuleType, data: st.DataObject
) -> None:
    good = build_batch([Record(i, i, b"key%d" % i, b"value" * i) for i in range(20)])
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(HEAD, len(bad) - 1))
        bad[at] = data.draw(st.integers(0, 255))
    pieces = [good, good, bytes(bad), good]
    # Only what a record says of itself is damaged: the framing is that of `good`.
    found, problems = read(b"".join(pieces), chunk=len(good))
    expected, complaints = measured(pieces)
    assert problems == complaints
    assert found.equals(expected)


@pytest.mark.parametrize(
    "other",
    [
        [Record(0, 0, None, b"v")],
        [Record(0, 0, b"k", None)],
        [Record(0, 0, b"k" * 9000, b"v")],
        [Record(0, 0, b"k", b"v", (("h", b"x"),))],
    ],
    ids=["a null key", "a null value", "larger keys", "headers"],
)
def test_a_run_that_is_different_is_noticed(kernel: ModuleType, other: list[Record]) -> None:
    alike = Alike()
    first = prepare(build_batch([Record(i, i, b"k", b"v") for i in range(9)]))
    alike.learn(first)
    assert alike.columns_of(first) == columns_of(first)
    assert alike.columns_of(prepare(build_batch(other))) is None
    alike.learn(prepare(build_batch(other)))
    assert alike.is_known is (not other[0].headers)

"""Files of batches as a stream of columns: memory, damage, projection, early ends."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kraftline.errors import BadData, Corrupt, Truncated
from kraftline.records.arrow import COLUMNS, decode_columns
from kraftline.records.column_reader import read_columns
from kraftline.records.record import Codec, Record
from kraftline.records.write import build_batch

BATCH = build_batch([Record(i, i, b"k%d" % i, b"v" * i, (("h", b"x"),)) for i in range(50)])
ZSTD = build_batch([Record(i, i, None, b"z" * 90_000) for i in range(40)], codec=Codec.ZSTD)


@pytest.mark.parametrize("threads", [1, 2])
def test_damage_is_reported_in_order_with_positions(threads: int, tmp_path: Path) -> None:
    bad = bytearray(BATCH)
    bad[100] ^= 255
    path = tmp_path / "damaged.log"
    path.write_bytes(b"".join([BATCH, bad] * 40) + BATCH[:70])
    problems: list[BadData] = []
    callers = set()

    def note(problem: BadData) -> None:
        problems.append(problem)
        callers.add(threading.current_thread())

    rows = sum(
        part.num_rows for part in read_columns(path, chunk=9000, threads=threads, on_error=note)
    )
    assert rows == 40 * 50
    positions = [len(BATCH) * (2 * i + 1) for i in range(40)] + [80 * len(BATCH)]
    assert [p.position for p in problems] == positions
    assert isinstance(problems[-1], Truncated)
    assert callers == {threading.current_thread()}


@pytest.mark.parametrize("threads", [1, 2])
def test_without_a_callback_damage_raises_and_names_the_file(threads: int, tmp_path: Path) -> None:
    bad = bytearray(BATCH)
    bad[100] ^= 255
    path = tmp_path / "damaged.log"
    path.write_bytes(BATCH * 3 + bad + BATCH * 3)
    with pytest.raises(Corrupt) as raised:
        list(read_columns(path, chunk=9000, threads=threads))
    assert (raised.value.file, raised.value.position) == (str(path), 3 * len(BATCH))


@pytest.mark.parametrize("threads", [1, 2])
def test_one_may_stop_early(threads: int, tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(BATCH * 200)
    before = threading.active_count()
    stream = read_columns(path, chunk=5000, threads=threads)
    assert next(stream).num_rows
    stream.close()  # type: ignore[attr-defined]  # it is a generator
    assert threading.active_count() == before


def test_what_compresses_well_comes_in_small_parts(tmp_path: Path) -> None:
    path = tmp_path / "dense.log"
    path.write_bytes(ZSTD * 60)  # 15 KB that hold 216 MB
    assert path.stat().st_size < 100_000
    sizes = [part.nbytes for part in read_columns(path, columns=["value"])]
    assert sum(sizes) > 200 << 20
    assert max(sizes) < 40 << 20


def test_a_range_of_a_file_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(BATCH * 10)
    parts = list(read_columns(path, start=2 * len(BATCH), end=5 * len(BATCH)))
    assert [p for part in parts for p in part.column("position").unique().to_pylist()] == [
        i * len(BATCH) for i in (2, 3, 4)
    ]


@pytest.mark.parametrize("name", COLUMNS)
def test_one_column_is_the_same_as_in_all(name: str) -> None:
    data = BATCH + ZSTD
    one = decode_columns(data, columns=[name])
    assert one.schema.names == [name]
    one.validate(full=True)
    assert one.column(0) == decode_columns(data).column(name)


def test_no_batches_are_no_rows() -> None:
    assert decode_columns(b"").num_rows == 0


def test_header_keys_that_are_not_text_are_made_text() -> None:
    data = bytearray(build_batch([Record(0, 0, None, None, (("abc", b"1"),))]))
    data[data.index(b"abc")] = 0xFF
    table = decode_columns(bytes(data), check_crc=False)
    table.validate(full=True)
    assert table.column("headers").to_pylist() == [[{"key": "\ufffdbc", "value": b"1"}]]

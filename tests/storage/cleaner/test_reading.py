"""Runs of plain batches are read by the kernels alone, and nothing wrong gets past them."""

from __future__ import annotations

from array import array
from pathlib import Path
from types import ModuleType

import pytest

from kraftline import kernels
from kraftline.errors import Corrupt
from kraftline.records import Codec, Record, build_batch
from kraftline.records.kernel import active as records_kernel
from kraftline.storage.cleaner import reading
from kraftline.storage.cleaner.kernel import active
from kraftline.storage.cleaner.reading import stretches
from kraftline.storage.log.segment import Segment
from kraftline.storage.segment_write import write_segment
from tests.storage.log.logs import NOW

KERNELS = (active, kernels.interpreted("kraftline.storage.cleaner._kernel"))


def batch(offset: int, size: int, codec: Codec = Codec.NONE) -> bytes:
    return build_batch([Record(offset, NOW, b"k", b"v" * size)], codec=codec)


@pytest.mark.parametrize("kernel", KERNELS, ids=["active", "interpreted"])
def test_checksums_of_any_length(kernel: ModuleType) -> None:
    data = bytearray(b"".join(batch(size, size) for size in range(100)))
    table = array("q", bytes(8 * records_kernel.STRIDE * 100))
    rows, _, _ = records_kernel.scan(data, 0, len(data), 0, table)
    tables = array("I", kernel.checksum_tables())
    large = array("q", bytes(800))
    assert kernel.unsound(data, table, rows, 0, 10_000, tables, large) == (-1, 0)
    for row in (0, 7, 99):
        at = table[row * records_kernel.STRIDE] + 60
        data[at] ^= 1
        assert kernel.unsound(data, table, rows, 0, 10_000, tables, large) == (row, 0)
        data[at] ^= 1
    # What is longer is told, and not looked at.
    _, count = kernel.unsound(data, table, rows, 0, 150, tables, large)
    sizes = table[records_kernel.SIZE :: records_kernel.STRIDE]
    assert list(large[:count]) == [row for row in range(100) if sizes[row] > 150]


def segment_of(directory: Path, batches: list[bytes]) -> Segment:
    path = directory / "00000000000000000000.log"
    write_segment(path, batches)
    return Segment(str(directory), 0, size=path.stat().st_size)


def test_plain_batches_take_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [batch(n, size) for n, size in enumerate([0, 50, 5000, 100_000, 3])]
    segment = segment_of(tmp_path, made)
    monkeypatch.setattr(reading, "prepare", None)  # the other way
    found = list(stretches(segment, 0, 10_000))
    assert sum(stretch.run.records for stretch in found) == 5
    assert sum(stretch.size for stretch in found) == segment.size


def test_both_ways_make_one(tmp_path: Path) -> None:
    codecs = [Codec.NONE, Codec.NONE, Codec.ZSTD, Codec.LZ4, Codec.NONE] * 20
    made = [batch(n, 100, codec) for n, codec in enumerate(codecs)]
    segment = segment_of(tmp_path, made)
    offsets: list[int] = []
    for stretch in stretches(segment, 0, 2000):
        for _, first, last in stretch.run.groups:
            bases = stretch.run.table[records_kernel.BASE_OFFSET :: records_kernel.STRIDE]
            offsets += bases[first:last]
    assert offsets == list(range(100))


@pytest.mark.parametrize("size", [20, 5000])
def test_damage_is_told_with_its_place(tmp_path: Path, size: int) -> None:
    segment = segment_of(tmp_path, [batch(n, size) for n in range(10)])
    position = 3 * len(batch(0, size))
    with open(segment.path(), "r+b") as file:
        file.seek(position + 70)
        file.write(b"\xff\xff")
    with pytest.raises(Corrupt, match="the checksum of the batch") as raised:
        list(stretches(segment, 0, 100_000))
    assert raised.value.position == position
    assert segment.path() in str(raised.value)

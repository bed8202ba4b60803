"""Runs of batches for the cleaner: all of them, and nothing wrong gets past."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.errors import Corrupt
from kraftline.records import Codec, Record, build_batch
from kraftline.records.kernel import active as records_kernel
from kraftline.storage.cleaner.reading import stretches
from kraftline.storage.log.segment import Segment
from kraftline.storage.segment_write import write_segment
from tests.storage.log.logs import NOW


def batch(offset: int, size: int, codec: Codec = Codec.NONE) -> bytes:
    return build_batch([Record(offset, NOW, b"k", b"v" * size)], codec=codec)


def segment_of(directory: Path, batches: list[bytes]) -> Segment:
    path = directory / "00000000000000000000.log"
    write_segment(path, batches)
    return Segment(str(directory), 0, size=path.stat().st_size)


def test_batches_of_all_codecs_come_in_order(tmp_path: Path) -> None:
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

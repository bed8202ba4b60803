"""Kafka's own reader accepts what we write, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftline.records.record import Codec, Record
from kraftline.records.write import build_batch
from tests.oracle.batches import BatchWriter
from tests.records.conftest import record_of

pytestmark = pytest.mark.oracle

SMALL = [Record(7 + 2 * i, 1_700_000_000_000 + i, b"k%d" % i, b"v" * i) for i in range(30)]
LARGE = [Record(i, 5, None, bytes((i + j) % 251 for j in range(9000))) for i in range(40)]


@pytest.fixture(scope="module")
def kafka() -> Iterator[BatchWriter]:
    with BatchWriter() as program:
        yield program


@pytest.mark.parametrize("records", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_kafka_reads_what_we_write(
    kafka: BatchWriter, magic: int, codec: Codec, records: list[Record]
) -> None:
    if magic < 2 and codec == Codec.ZSTD:
        pytest.skip("not in this format")
    if magic == 0:
        records = [Record(r.offset, -1, r.key, r.value) for r in records]
    lines = kafka.read(build_batch(records, magic=magic, codec=codec))
    assert [record_of(line) for line in lines] == records

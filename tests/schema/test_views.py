"""A reader over a view: the same messages, and bytes that are views of it."""

from __future__ import annotations

import pytest

from kraftline.errors import BadData
from kraftline.schema import wire
from kraftline.schema.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftline.schema.codec import encode, reader
from kraftline.schema.uuids import Uuid

READERS = [wire.Reader, wire.interpreted().Reader]
REQUEST = ProduceRequest(
    transactional_id="t",
    acks=-1,
    topic_data=tuple(
        TopicProduceData(
            name=f"topic-{n}",
            topic_id=Uuid.parse("AAAAAAAAAAAAAAAAAAAAew"),
            partition_data=(PartitionProduceData(index=n, records=b"records"),),
        )
        for n in range(2)
    ),
)


@pytest.mark.parametrize("kind", READERS, ids=["in force", "interpreted"])
@pytest.mark.parametrize("version", [3, 9, 12, 13])
def test_records_are_views_that_can_be_written(kind: type[wire.Reader], version: int) -> None:
    data = bytearray(b"head" + encode(REQUEST, version))
    found = reader(ProduceRequest, version)(kind(memoryview(data)[4:]))
    plain = reader(ProduceRequest, version)(kind(bytes(data), 4))
    assert found == plain
    records = found.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0:1] = b"R"
    assert b"Records" in data


@pytest.mark.parametrize("kind", READERS, ids=["in force", "interpreted"])
def test_a_cut_view_is_refused_as_cut_bytes_are(kind: type[wire.Reader]) -> None:
    data = memoryview(bytearray(encode(REQUEST, 9)))
    for end in range(len(data)):
        with pytest.raises(BadData):
            reader(ProduceRequest, 9)(kind(data[:end]))

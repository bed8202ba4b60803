"""Bytes that a message only stands for: their length is written, they themselves are not."""

from __future__ import annotations

import pytest

from kraftline.schema.api.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftline.schema.codec import encode, writer
from kraftline.schema.lent import Lent
from kraftline.schema.wire import Writer


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_lent_records_leave_a_cut_where_their_bytes_belong(version: int) -> None:
    def response(*records: object) -> FetchResponse:
        partitions = tuple(
            PartitionData(partition_index=n, records=each)  # type: ignore[arg-type]  # lent
            for n, each in enumerate(records)
        )
        return FetchResponse(responses=(FetchableTopicResponse(partitions=partitions),))

    whole = encode(response(b"a" * 200, None, b"", b"b" * 3), version)
    w = Writer()
    lent = response(Lent(200, b"a" * 200), None, b"", Lent(3, b"b" * 3))
    writer(FetchResponse, version)(w, lent)
    parts = w.parts()
    assert len(parts) == 5
    assert b"".join(parts) == whole

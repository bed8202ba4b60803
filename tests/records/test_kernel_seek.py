"""Finding an offset by headers, and the times of a batch: both kernels, the same answers."""

from __future__ import annotations

from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline import kernels
from kraftline.records import Record, build_batch
from kraftline.records.kernel import NAME, active

KERNELS = [active, kernels.interpreted(NAME)]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=["active", "interpreted"])


def batch(offset: int, count: int = 3, *, magic: int = 2, size: int = 10) -> bytes:
    records = [Record(offset + n, 1000, None, b"x" * size) for n in range(count)]
    return build_batch(records, magic=magic)


@each_kernel
def test_the_first_batch_that_ends_at_or_after_an_offset_is_found(kernel: ModuleType) -> None:
    parts = [batch(0), batch(3), batch(10), batch(13, 1, magic=1), batch(14)]
    data, starts = b"".join(parts), [sum(map(len, parts[:n])) for n in range(len(parts))]
    expected = {0: 0, 2: 0, 3: 1, 6: 2, 12: 2, 13: 3, 14: 4, 16: 4}
    for offset, n in expected.items():
        assert kernel.seek(data, 0, len(data), offset) == (starts[n], len(parts[n]))
    assert kernel.seek(data, 0, len(data), 17) == (len(data), 0)


@each_kernel
def test_only_headers_need_to_be_in_sight(kernel: ModuleType) -> None:
    first, second = batch(0, size=1000), batch(3, size=1000)
    data = first + second
    # The next header is where the first batch ends, which is not in sight.
    assert kernel.seek(data[:61], 0, 61, 4) == (len(first), 0)
    assert kernel.seek(data[:61], 0, 61, 2) == (0, len(first))
    assert kernel.seek(data[:26], 0, 26, 2) == (0, 0)


@each_kernel
def test_a_header_that_cannot_be_is_told(kernel: ModuleType) -> None:
    data = batch(0) + bytes(100)
    assert kernel.seek(data, 0, len(data), 5) == (len(batch(0)), -1)


@given(times=st.lists(st.integers(0, 2**62), min_size=1, max_size=20))
def test_the_oldest_and_newest_timestamps_are_told(times: list[int]) -> None:
    data = build_batch([Record(n, time, None, b"") for n, time in enumerate(times)])
    for kernel in KERNELS:
        table = array("q", bytes(8 * kernel.STRIDE))
        sums = array("q", bytes(8 * kernel.TOTALS))
        kernel.scan(data, 0, len(data), 0, table)
        kernel.measure(data, table, 0, 1, sums)
        assert (sums[kernel.OLDEST], sums[kernel.NEWEST]) == (min(times), max(times))

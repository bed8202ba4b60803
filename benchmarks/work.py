"""What is timed of ours, and of pyarrow: `python -m benchmarks.work NAME FILE [THREADS]`.

Each runs in a fresh process, keeps nothing of what it reads, and reports as one line of JSON how
long the work took (without imports, which the parent sees in the whole process) and how many rows
it came to.
"""

from __future__ import annotations

import json
import sys
import time
from array import array
from collections.abc import Callable
from itertools import compress

ROWS = ("offset", "timestamp", "key", "value", "headers")
_CONTROL = 0x20


def data_columns(path: str, threads: str = "1") -> Callable[[], int]:
    """Every column of a segment, checksums compared."""
    from kraftline.records.column_reader import read_columns

    return lambda: sum(batch.num_rows for batch in read_columns(path, threads=int(threads)))


def row_columns(path: str, threads: str = "1") -> Callable[[], int]:
    """The columns that the Parquet file has too, checksums compared."""
    from kraftline.records.column_reader import read_columns

    return lambda: sum(
        batch.num_rows for batch in read_columns(path, columns=ROWS, threads=int(threads))
    )


def parquet(path: str, threads: str = "1") -> Callable[[], int]:
    """The same rows through pyarrow, a row group (8 MB of segment) at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(int(threads))

    def read() -> int:
        rows = 0
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                rows += file.read_row_group(group, use_threads=int(threads) > 1).num_rows
        return rows

    return read


def metadata_columns(path: str, threads: str = "1") -> Callable[[], int]:
    """A table per record type, checksums compared."""
    from kraftline.records.metadata_reader import read_metadata

    def read() -> int:
        rows = 0
        for part in read_metadata(path, threads=int(threads)):
            rows += sum(table.num_rows for table in part.tables.values()) + len(part.aside)
        return rows

    return read


def metadata_objects(path: str) -> Callable[[], int]:
    """Every record as an object of its class, one after the other, checksums compared."""
    from kraftline.records.kernel import active as kernel
    from kraftline.records.runs import positions, prepare
    from kraftline.schema.metadata.frame import RecordReader
    from kraftline.storage.segment import SegmentReader

    def read() -> int:
        rows = 0
        with SegmentReader(path, window=1024 * 1024) as reader:
            for buffer, start, end, position in reader.runs():
                run = prepare(buffer, start, end, position=position)
                control = {
                    at // kernel.STRIDE
                    for at in range(kernel.ATTRIBUTES, len(run.table), kernel.STRIDE)
                    if run.table[at] & _CONTROL
                }
                for source, numbers, stride in positions(run):
                    starts = numbers[kernel.P_VALUE :: stride]
                    ends = numbers[kernel.P_VALUE_END :: stride]
                    rows += len(starts)
                    if control:
                        batches = numbers[kernel.P_ROW :: stride]
                        typed = [batch not in control for batch in batches]
                        starts = array("q", compress(starts, typed))
                        ends = array("q", compress(ends, typed))
                    RecordReader(bytes(source)).read(starts, ends)
        return rows

    return read


WORK: dict[str, Callable[..., Callable[[], int]]] = {
    work.__name__: work
    for work in (data_columns, row_columns, parquet, metadata_columns, metadata_objects)
}


def main() -> None:
    read = WORK[sys.argv[1]](*sys.argv[2:])
    start = time.perf_counter()
    rows = read()
    print(json.dumps({"seconds": time.perf_counter() - start, "rows": rows}))


if __name__ == "__main__":
    main()

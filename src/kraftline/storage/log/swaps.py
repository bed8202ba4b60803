"""Files that a stop left half way: deletions, and what the cleaner was swapping in.

As Kafka does: `.deleted` and `.cleaned` files go. A `.swap` file stands for the segments that it
was made of, which go before it takes their place; one that a `.cleaned` file came before is of a
split that did not come to its end, and goes too.
"""

from __future__ import annotations

import os

from kraftline.storage.names import MAX_OFFSET, FileKind, Working
from kraftline.storage.partition_dir import PartitionDirectory, WorkingFile
from kraftline.storage.segment import SegmentReader


def finish_swaps(there: PartitionDirectory) -> None:
    """Leave only ordinary files in a partition's directory."""
    cleaned = [file for file in there.working_files if file.name.working is Working.CLEANED]
    first_cleaned = min((file.name.offset for file in cleaned), default=MAX_OFFSET)
    swaps = []
    for file in there.working_files:
        if file.name.working is not Working.SWAP or (
            first_cleaned is not None and file.name.offset >= first_cleaned
        ):
            os.unlink(file.path)
        else:
            swaps.append(file)
    logs = [file for file in swaps if file.name.kind is FileKind.LOG]
    if logs:
        first = min(file.name.offset for file in logs)
        end = max(map(_next_offset, logs))
        for segment in there.segments:
            if first <= segment.base_offset < end:
                for path in (segment.path, *(each.path for each in segment.companions)):
                    os.unlink(path)
        for snapshot in there.producer_snapshots:
            if first <= snapshot.end_offset < end:
                os.unlink(snapshot.path)
    for file in swaps:
        os.rename(file.path, file.path.removesuffix(Working.SWAP.value))


def _next_offset(file: WorkingFile) -> int:
    found = file.name.offset
    with SegmentReader(file.path, on_damage=lambda damage: None) as reader:
        for frame in reader.frames():
            found = frame.last_offset + 1
    return found

"""A metadata log and its snapshots, for whoever replays them or compares two of them.

What cannot be read is left out: it is a finding of another check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraftline.inspect.history.batches import Batch, Progress, sound_batches
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.loader import MetadataBatch, Replay, read_log
from kraftline.storage.segment import SegmentReader
from kraftline.storage.snapshot_file import SnapshotReader


def read_headers(segments: Sequence[str], progress: Progress | None = None) -> Iterator[Batch]:
    """The headers of all sound batches; `progress` hears of the bytes that are done."""
    for path in segments:
        yield from sound_batches(path, _unheard, progress)


def read_batches(
    segments: Sequence[str], progress: Progress | None = None
) -> Iterator[MetadataBatch]:
    """The sound batches with their records. One that is left out is a gap between offsets."""
    for path in segments:
        with SegmentReader(path, on_damage=_unheard) as reader:
            yield from read_log(reader, progress=progress)


def snapshot_image(path: str) -> MetadataImage:
    """What a snapshot holds, as Kafka would load it; BadData where it is not whole."""
    with SnapshotReader(path, any_epoch=True) as reader:
        return Replay().load_snapshot(reader).image


def _unheard(_: object) -> None:
    pass

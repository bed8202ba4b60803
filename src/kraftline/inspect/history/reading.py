"""The batches of a history with their records, from whichever files they are in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraftline.errors import NotKafka
from kraftline.inspect.history.batches import Batch, Progress
from kraftline.inspect.history.trouble import OnTrouble, of_damage
from kraftline.metadata.loader.batches import MetadataBatch, read_log
from kraftline.storage.segment import SegmentReader


def read_batches(
    batches: Sequence[Batch], trouble: OnTrouble, progress: Progress | None = None
) -> Iterator[MetadataBatch]:
    """What sound batches hold; one whose records cannot be told apart goes to `trouble`."""
    for file, start, end in _stretches(batches):
        with SegmentReader(file, on_damage=lambda damage: trouble(of_damage(damage))) as reader:
            yield from read_log(reader, start, end, check=False, progress=progress)
            if reader.size() < end:
                raise NotKafka(f"{file}: became shorter while it was read; try again")


def _stretches(batches: Sequence[Batch]) -> Iterator[tuple[str, int, int]]:
    """(file, start, end) of neighbours, which are read together."""
    file, start, end = "", 0, 0
    for batch in batches:
        if batch.position != end or batch.file != file:
            if start < end:
                yield file, start, end
            file, start = batch.file, batch.position
        end = batch.position + batch.size
    if start < end:
        yield file, start, end

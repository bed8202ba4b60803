"""A round of our cleaner on a log, as tests want it."""

from __future__ import annotations

from kraftline.storage.cleaner.choosing import dirt_of
from kraftline.storage.cleaner.cleaning import Cleaned, Cleaning
from kraftline.storage.cleaner.offset_map import OffsetMap
from kraftline.storage.log import PartitionLog


def clean(
    log: PartitionLog, checkpoint: int | None, now: int, memory: int = 1024 * 1024
) -> Cleaned:
    """Clean an open log from where it is dirty."""
    dirt = dirt_of(log, checkpoint, now)
    return Cleaning(log, dirt, OffsetMap(memory, 0.9), now).run()

"""Small files of real directories, cut and flipped: nothing but BadData ever comes out."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.errors import BadData
from kraftline.storage.checkpoints import (
    OFFSET_CHECKPOINTS,
    read_leader_epochs,
    read_offset_checkpoint,
)
from kraftline.storage.clean_shutdown import read_clean_shutdown
from kraftline.storage.meta_properties import read_meta_properties
from kraftline.storage.offset_index import read_offset_index
from kraftline.storage.partition_metadata import read_partition_metadata
from kraftline.storage.producer_snapshot import read_producer_snapshot
from kraftline.storage.quorum_state import read_quorum_state
from kraftline.storage.time_index import read_time_index
from kraftline.storage.txn_index import read_txn_index
from tests.storage.fixture_files import data_files

READERS: list[tuple[Callable[[bytes], object], tuple[str, ...]]] = [
    (read_offset_index, ("*.index",)),
    (read_time_index, ("*.timeindex",)),
    (read_txn_index, ("*.txnindex",)),
    (read_producer_snapshot, ("*.snapshot",)),
    (read_offset_checkpoint, OFFSET_CHECKPOINTS),
    (read_leader_epochs, ("leader-epoch-checkpoint",)),
    (read_meta_properties, ("meta.properties",)),
    (read_partition_metadata, ("partition.metadata",)),
    (read_clean_shutdown, (".kafka_cleanshutdown",)),
    (read_quorum_state, ("quorum-state",)),
]


def samples(patterns: tuple[str, ...]) -> list[bytes]:
    """A few different files, the richest first."""
    found = {path.read_bytes() for path in data_files(*patterns) if path.stat().st_size < 100_000}
    return sorted(found, key=lambda data: (-len(data), data))[:6]


def survive(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(BadData):
        read(data)


@pytest.mark.parametrize(
    ("read", "patterns"), READERS, ids=lambda value: getattr(value, "__name__", "")
)
def test_cut_anywhere(read: Callable[[bytes], object], patterns: tuple[str, ...]) -> None:
    for data in samples(patterns):
        for end in range(min(len(data), 600)):
            survive(read, data[:end])


@pytest.mark.parametrize(
    ("read", "patterns"), READERS, ids=lambda value: getattr(value, "__name__", "")
)
def test_flipped_anywhere(read: Callable[[bytes], object], patterns: tuple[str, ...]) -> None:
    for data in samples(patterns):
        for at in range(min(len(data), 200)):
            for bit in range(8):
                hurt = bytearray(data)
                hurt[at] ^= 1 << bit
                survive(read, bytes(hurt))


@pytest.mark.parametrize(
    ("read", "patterns"), READERS, ids=lambda value: getattr(value, "__name__", "")
)
def test_noise(read: Callable[[bytes], object], patterns: tuple[str, ...]) -> None:
    rolls = random.Random(7)
    for size in range(200):
        survive(read, rolls.randbytes(size))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    for read, _ in READERS:
        for _, patterns in READERS:
            for data in samples(patterns)[-2:]:
                survive(read, data)

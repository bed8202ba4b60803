"""However a log is cut into commits, the loader ends in the image that Kafka has."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftline.metadata.image import EMPTY, MetadataImage
from kraftline.metadata.loader import (
    CollectedFaults,
    MetadataBatch,
    MetadataLoader,
    image_of,
    replay,
)
from kraftline.metadata.write_options import Versioned
from kraftline.records.batch import Batch
from kraftline.schema.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kraftline.schema.types import Message
from kraftline.storage.segment import SegmentReader
from kraftline.storage.snapshot_file import SnapshotReader
from tests.effort import rounds
from tests.metadata.generated import logs
from tests.metadata.loading import VERSION, Recorder, batch, log_of
from tests.metadata.replaying import canonical, digest, state, written
from tests.metadata.replaying import replay as replay_all
from tests.metadata.test_image_against_kafka import DIRECTORIES, boundaries, by_directory, says

T = TypeVar("T")


def refused_by_kafka(directory: Path) -> list[int]:
    return [fault["offset"] for line in boundaries(directory) for fault in line["faults"]]


def kafkas(directory: Path) -> list[str]:
    (end,) = (line for line in says(directory) if "end" in line)
    return canonical(end["image"])


def load(
    commits: Sequence[Sequence[MetadataBatch]],
    snapshot: Path | None = None,
    publisher: Recorder | None = None,
    refused: Sequence[int] = (),
) -> MetadataImage:
    """The image of a loader that gets these commits; `refused` are the offsets of records that
    Kafka's classes refuse as well."""
    faults = CollectedFaults()

    async def run() -> MetadataImage:
        loader = MetadataLoader(high_watermark=lambda: 0, faults=faults)
        async with loader:
            if publisher is not None:
                await loader.install_publishers([publisher])
            if snapshot is not None:
                with SnapshotReader(snapshot) as reader:
                    await loader.handle_load_snapshot(reader)
            for commit in commits:
                await loader.handle_decoded_commit(commit)
            await loader.drained()
            return loader.image

    image = asyncio.run(run())
    assert [fault.offset for fault in faults.faults] == list(refused)
    return image


def cut(log: Sequence[T], places: Sequence[int]) -> list[Sequence[T]]:
    bounds = [0, *sorted(place % (len(log) + 1) for place in places), len(log)]
    return [log[a:b] for a, b in pairwise(bounds)]


@by_directory
def test_one_commit_per_batch_ends_in_kafkas_image(directory: Path) -> None:
    image = load([[each] for each in log_of(directory)], refused=refused_by_kafka(directory))
    assert canonical(written(image)) == kafkas(directory)
    assert image.offset == log_of(directory)[-1].last_offset


@by_directory
def test_all_in_one_commit_ends_in_kafkas_image(directory: Path) -> None:
    image = load([log_of(directory)], refused=refused_by_kafka(directory))
    assert canonical(written(image)) == kafkas(directory)


@by_directory
def test_raw_batches_end_in_kafkas_image(directory: Path) -> None:
    faults = CollectedFaults()

    async def run() -> MetadataImage:
        async with MetadataLoader(high_watermark=lambda: 0, faults=faults) as loader:
            for path in sorted(directory.glob("*.log")):
                with SegmentReader(path) as reader:
                    found: list[Batch] = [each for each, _ in reader.batches()]
                await loader.handle_commit(found)
            return loader.image

    assert canonical(written(asyncio.run(run()))) == kafkas(directory)
    assert [fault.offset for fault in faults.faults] == refused_by_kafka(directory)


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.parts[-4])
@settings(max_examples=rounds(5))
@given(places=st.lists(st.integers(0, 10_000), max_size=30))
def test_any_grouping_ends_in_kafkas_image(directory: Path, places: list[int]) -> None:
    recorder = Recorder()
    image = load(
        cut(log_of(directory), places), publisher=recorder, refused=refused_by_kafka(directory)
    )
    assert canonical(written(image)) == kafkas(directory)
    # The publisher can go on from what it knows: each delta leads from one image to the next.
    before = EMPTY
    for delta, after, _ in recorder.updates:
        assert delta.image is before
        before = after
    for delta, after, manifest in recorder.updates[:1] + recorder.updates[-1:]:
        assert state(delta.apply(manifest.provenance)) == state(after)
    assert before is image


@by_directory
def test_every_publication_of_the_synchronous_replay_is_kafkas(directory: Path) -> None:
    found = {}
    for publication in replay(log_of(directory)):
        image = publication.image
        found[image.offset] = image
        assert image.provenance == publication.manifest.provenance
    lines = {line["offset"]: line["digest"] for line in boundaries(directory)}
    checked = [
        digest(written(image)) == lines[offset]
        for offset, image in found.items()
        if image.provenance.batch_aligned
    ]
    assert all(checked)
    assert len(checked) > 10
    assert canonical(written(image_of(log_of(directory)))) == kafkas(directory)


@by_directory
def test_snapshot_plus_tail_ends_in_the_same_image(directory: Path) -> None:
    whole = state(image_of(log_of(directory)))
    for path in sorted(directory.glob("*.checkpoint")):
        end = int(path.name[:20])
        tail = [each for each in log_of(directory) if each.base_offset >= end]
        if not tail:
            continue
        image = load([tail], path)
        extra = set(state(image)) - set(whole)
        if "aborted" in str(directory) and end > 0:
            # A real node's snapshot has a topic that an aborted transaction made.
            assert all('"never"' in each for each in extra)
            continue
        assert not extra
        assert state(image) == whole


@given(
    log=logs,
    ends=st.lists(st.integers(0, 500), max_size=20),
    places=st.lists(st.integers(0, 500), max_size=8),
)
def test_random_logs_end_in_one_image_however_they_are_cut(
    log: list[list[Versioned]], ends: list[int], places: list[int]
) -> None:
    """Batches and commits may end anywhere, also inside transactions."""
    records = [record for group in log for record, _ in group]
    batches = [batch(0, VERSION)]
    for piece in cut(records, ends):
        if piece:
            batches.append(batch(batches[-1].last_offset + 1, *piece))
    expected = state(replay_all([VERSION, *settled(records)]))
    assert state(load(cut(batches, places))) == expected
    assert state(image_of(batches)) == expected


def settled(records: Sequence[Message]) -> list[Message]:
    """The records that count, by the plainest reading of what transactions are."""
    out: list[Message] = []
    start = 0
    for record in records:
        match record:
            case BeginTransactionRecord():
                start = len(out)
            case AbortTransactionRecord():
                del out[start:]
            case EndTransactionRecord():
                pass
            case _:
                out.append(record)
    return out

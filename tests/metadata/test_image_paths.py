"""Every way to an image gives the same image: record by record, batch by batch, in one delta, from
a snapshot and what follows, from any point to any later one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.metadata.features import LATEST_PRODUCTION
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.metadata import PARTS
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from kraftline.schema.types import Message
from tests.effort import rounds
from tests.fixtures.images.make import directories, file_of
from tests.metadata.generated import logs
from tests.metadata.replaying import (
    LogBatch,
    Replayer,
    batches_of,
    canonical,
    read_batches,
    replay,
    written,
)

Publication = list[Message]

by_directory = pytest.mark.parametrize(
    "directory", directories(), ids=lambda path: file_of(path).name.partition(".jsonl")[0]
)


def publications(batches: Iterable[LogBatch]) -> list[Publication]:
    """What takes effect together: a batch, or a whole transaction; not what was aborted, nor what
    is refused."""
    replayer = Replayer()
    out: list[Publication] = [[]]
    before: list[Message] = []
    for batch in batches:
        known = len(replayer.faults)
        replayer.take(batch)
        refused = {offset for offset, _ in replayer.faults[known:]}
        for offset, record, _ in batch.records:
            match record:
                case BeginTransactionRecord():
                    before, out[-1] = out[-1], []
                case EndTransactionRecord():
                    out[-1] = before + out[-1]
                    before = []
                case AbortTransactionRecord():
                    out[-1], before = before, []
                case _ if offset not in refused:
                    out[-1].append(record)
        if not replayer.in_transaction:
            out.append([])
    return [each for each in out if each]


def parts(image: MetadataImage) -> dict[str, object]:
    return {name: getattr(image, name) for name in PARTS}


def images(log: list[Publication]) -> list[MetadataImage]:
    """The image before the first publication and after each."""
    out = [EMPTY]
    for each in log:
        out.append(replay(each, out[-1]))
    return out


def snapshot(image: MetadataImage) -> list[Message]:
    """All of an image as records, whatever its version would leave out."""
    options = WriteOptions(LATEST_PRODUCTION, True)
    records = [message for message, _ in image.write(options)]
    # The first says the version that was asked for, not the image's.
    version = image.features.metadata_version
    if version is None:
        return records[1:]
    first = FeatureLevelRecord(name="metadata.version", feature_level=version.level)
    return [first, *records[1:]]


def loaded(records: Iterable[Message], over: MetadataImage) -> MetadataImage:
    """A snapshot loaded over an image."""
    delta = MetadataDelta(over)
    for record in records:
        delta.replay(record)
    delta.finish_snapshot()
    return delta.apply(over.provenance)


def assert_every_path_agrees(log: list[Publication], rng: Random, tries: int) -> None:
    way = images(log)
    end = parts(way[-1])
    everything = [record for each in log for record in each]
    assert parts(replay(everything)) == end
    one_by_one = EMPTY
    for record in everything:
        one_by_one = replay([record], one_by_one)
    assert parts(one_by_one) == end
    for _ in range(tries):
        first, last = sorted((rng.randrange(len(way)), rng.randrange(len(way))))
        between = [record for each in log[first:last] for record in each]
        assert parts(replay(between, way[first])) == parts(way[last])
        # From a snapshot of an earlier image, then the tail.
        again = replay(snapshot(way[first]))
        assert parts(again) == parts(way[first])
        assert parts(replay(between, again)) == parts(way[last])


@by_directory
def test_real_logs_give_one_image_on_every_path(directory: Path) -> None:
    log = publications(read_batches(sorted(directory.glob("*.log"))))
    assert_every_path_agrees(log, Random(directory.name), rounds(20))


@given(logs, st.randoms(use_true_random=False))
def test_random_logs_give_one_image_on_every_path(log: list[list[Versioned]], rng: Random) -> None:
    assert_every_path_agrees(publications(batches_of(log)), rng, 5)


@given(logs, logs)
def test_snapshot_over_any_image_gives_the_image_it_was_taken_of(
    one: list[list[Versioned]], other: list[list[Versioned]]
) -> None:
    image = images(publications(batches_of(one)))[-1]
    before = images(publications(batches_of(other)))[-1]
    found = parts(loaded(snapshot(image), before))
    if image.producer_ids.is_empty:
        # The next producer id is the one thing that a snapshot without it leaves alone.
        assert found.pop("producer_ids") == before.producer_ids
        assert found == {k: v for k, v in parts(image).items() if k != "producer_ids"}
    else:
        assert found == parts(image)


@given(logs)
def test_loading_what_is_there_already_changes_nothing(log: list[list[Versioned]]) -> None:
    image = images(publications(batches_of(log)))[-1]
    assert loaded(snapshot(image), image) is image


@by_directory
def test_real_snapshots_equal_the_replay_up_to_their_end(directory: Path) -> None:
    ends = {int(path.stem.split("-")[0]): path for path in directory.glob("*.checkpoint")}
    replayer = Replayer()
    for batch in read_batches(sorted(directory.glob("*.log"))):
        image = replayer.take(batch)
        path = ends.get(batch.last_offset + 1)
        if path is not None:
            theirs = Replayer().snapshot(path)
            assert canonical(written(theirs)) == canonical(written(image)), path.name


def test_aborted_transaction_has_no_effect() -> None:
    (directory,) = (path for path in directories() if "aborted_4_3" in path.parts)
    replayer = Replayer()
    for batch in read_batches(sorted(directory.glob("*.log"))):
        replayer.take(batch)
    assert sorted(replayer.image.topics.ids) == ["after", "before"]

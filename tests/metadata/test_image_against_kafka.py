"""Our image equals Kafka's, at every batch boundary of every real metadata log, and for random
logs where Java is at hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kraftline.metadata.faults import UnwritableMetadata
from kraftline.metadata.features import from_level
from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.local_changes import LocalPartition, TopicPartition
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.jsonform import to_json
from kraftline.schema.metadata import TYPE_NAMES
from tests.effort import rounds
from tests.fixtures.images.make import BROKERS, directories, file_of, lines
from tests.metadata.generated import LogMaker
from tests.metadata.replaying import (
    Replayer,
    batches_of,
    canonical,
    digest,
    messages,
    read_batches,
    replay,
    sections,
    written,
)
from tests.oracle.image import ImageOracle
from tests.oracle.lines import Json

DIRECTORIES = directories()
by_directory = pytest.mark.parametrize(
    "directory", DIRECTORIES, ids=lambda path: file_of(path).name.partition(".jsonl")[0]
)


def says(directory: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(file_of(directory).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def boundaries(directory: Path) -> list[dict[str, Any]]:
    return [line for line in says(directory) if "offset" in line]


def logs(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


@pytest.fixture(scope="module")
def oracle() -> Iterator[ImageOracle]:
    with ImageOracle() as program:
        yield program


@by_directory
def test_image_is_kafkas_at_every_batch_boundary(directory: Path) -> None:
    replayer = Replayer()
    for batch, line in zip(read_batches(logs(directory)), boundaries(directory), strict=True):
        faults = len(replayer.faults)
        image = replayer.take(batch)
        where = f"{directory} at {batch.last_offset}"
        assert (batch.last_offset, batch.epoch, batch.time) == (
            line["offset"],
            line["epoch"],
            line["time"],
        )
        records = written(image)
        assert len(records) == line["count"], where
        assert sections(records) == line["sections"], where
        assert digest(records) == line["digest"], where
        assert [offset for offset, _ in replayer.faults[faults:]] == [
            fault["offset"] for fault in line["faults"]
        ]
        if replayer.published and not replayer.in_transaction:
            assert image.provenance == Provenance(batch.last_offset, batch.epoch, batch.time, True)


def test_logs_that_are_compared_have_every_record_type() -> None:
    """Real ones what real Kafka can be made to write, random ones the rest."""
    real = {
        TYPE_NAMES[message.SPEC.key]
        for directory in DIRECTORIES
        for batch in read_batches(logs(directory))
        for _, message, _ in batch.records
    }
    random = {
        TYPE_NAMES[message.SPEC.key]
        for seed in range(5)
        for batch in LogMaker(Random(seed)).log(80)
        for message, _ in batch
    }
    # The migration ended with 3.9, and took a ZooKeeper; the other type came with 4.4.
    assert set(TYPE_NAMES.values()) - real == {
        "ZK_MIGRATION_STATE_RECORD",
        "UNREGISTER_CONTROLLER_RECORD",
    }
    assert set(TYPE_NAMES.values()) - real - random == {"UNREGISTER_CONTROLLER_RECORD"}


@by_directory
def test_last_image_is_kafkas_record_by_record(directory: Path) -> None:
    replayer = Replayer()
    for batch in read_batches(logs(directory)):
        replayer.take(batch)
    (end,) = (line for line in says(directory) if "end" in line)
    assert canonical(written(replayer.image)) == canonical(end["image"])


@by_directory
def test_local_changes_are_kafkas(directory: Path) -> None:
    replayer = Replayer()
    for batch, line in zip(read_batches(logs(directory)), boundaries(directory), strict=True):
        replayer.take(batch)
        for broker, theirs in line["local"].items():
            assert_local_changes(replayer.published, int(broker), theirs)


def assert_local_changes(deltas: list[MetadataDelta], broker: int, theirs: dict[str, Any]) -> None:
    (delta,) = deltas
    assert delta.topics is not None
    ours = delta.topics.local_changes(broker)
    assert {f"{topic}-{number}" for topic, number in ours.deletes} == set(theirs["deletes"])
    assert epochs(ours.elected_leaders) == theirs["electedLeaders"]
    assert epochs(ours.leaders) == theirs["leaders"]
    assert epochs(ours.followers) == theirs["followers"]
    assert {name: str(topic_id) for name, topic_id in ours.topic_ids.items()} == theirs["topicIds"]
    found = {f"{key.topic}-{key.partition}": str(v) for key, v in ours.directory_ids.items()}
    # Kafka compares objects, so it also has those that a record said again.
    for where, directory in theirs["directoryIds"].items():
        if where in found:
            assert found.pop(where) == directory
        else:
            name, _, number = where.rpartition("-")
            topic = delta.image.topics.named(name)
            before = None if topic is None else topic.partition(int(number))
            assert before is not None
            assert str(before.directory(broker)) == directory
    assert not found


def epochs(found: Mapping[TopicPartition, LocalPartition]) -> dict[str, Any]:
    return {
        f"{where.topic}-{where.partition}": {
            "topicId": str(local.topic_id),
            "leaderEpoch": local.partition.leader_epoch,
            "partitionEpoch": local.partition.partition_epoch,
        }
        for where, local in found.items()
    }


@by_directory
def test_image_for_every_version_is_kafkas(directory: Path) -> None:
    (end,) = (line for line in says(directory) if "end" in line)
    image = replay(messages(end["image"]))
    for line in says(directory):
        if "level" in line:
            assert_written_for(image, line)


def assert_written_for(image: MetadataImage, line: dict[str, Any]) -> None:
    lost: list[str] = []
    version = from_level(line["level"])
    records = written(image, WriteOptions(version, line["elr"], lost.append))
    if "error" in line:
        # Kafka stops in the middle of it; we call it what it is.
        assert "eligibleLeaderReplicas" in line["error"] or "lastKnownElr" in line["error"]
        lost.remove("the eligible leader replicas of one or more partitions")
    else:
        assert len(records) == line["count"]
        assert sections(records) == line["sections"]
        assert digest(records) == line["digest"]
    # Brokers, and names in a message, are in the order of a hash map.
    assert sorted(map(sorted, lost)) == sorted(map(sorted, line["lost"]))
    if lost:
        with pytest.raises(UnwritableMetadata) as error:
            image.write(WriteOptions(version, line["elr"]))
        assert str(error.value).startswith(
            "Metadata has been lost because the following could not be represented in "
            f"metadata.version {version.name}: "
        )


@by_directory
def test_image_of_a_snapshot_is_kafkas(directory: Path) -> None:
    for line in says(directory):
        if "snapshot" in line:
            image = Replayer().snapshot(directory / line["snapshot"])
            assert digest(written(image)) == line["digest"], line["snapshot"]


@pytest.mark.soak
@pytest.mark.oracle
def test_fixture_is_what_kafka_says_today(oracle: ImageOracle) -> None:
    for directory in DIRECTORIES:
        for today, then in zip(lines(oracle, directory), says(directory), strict=True):
            if "image" in then:
                assert canonical(today["image"]) == canonical(then["image"])
            elif "lost" in then:
                # In the order of a hash map.
                both = (sorted(map(sorted, each.pop("lost"))) for each in (today, then))
                assert next(both) == next(both)
                assert today == then
            else:
                assert json.loads(json.dumps(today)) == then


@pytest.mark.oracle
def test_image_is_kafkas_for_random_logs(oracle: ImageOracle) -> None:
    for seed in range(rounds(30)):
        maker = LogMaker(Random(seed))
        log = maker.log(80)
        # Each odd record has a batch of its own, as Kafka may spoil the delta that refuses it.
        log += [[odd] for odd in maker.odd_records()]
        theirs = oracle.replay(batches=as_json(log), brokers=BROKERS, levels=(7, 16, 22, 30))
        replayer = Replayer()
        for batch, line in zip(batches_of(log), theirs, strict=False):
            image = replayer.take(batch)
            where = f"seed {seed} at {batch.last_offset}: {batch.records}"
            assert line["offset"] == batch.last_offset
            assert canonical(written(image)) == canonical(as_list(line["image"])), where
            refused = {offset for offset, _ in replayer.faults} & {r[0] for r in batch.records}
            assert refused == {as_dict(fault)["offset"] for fault in as_list(line["faults"])}, where
            for broker, local in as_dict(line["local"]).items():
                assert_local_changes(replayer.published, int(broker), as_dict(local))
        assert len(replayer.faults) >= 15
        for line in theirs[len(log) :]:
            words = [str(each).partition(": ")[2] for each in as_list(line["lost"])]
            lost = list(dict.fromkeys(words))
            more = (
                {}
                if "error" in line
                else {
                    "count": len(as_list(line["image"])),
                    "sections": sections(as_list(line["image"])),
                    "digest": digest(as_list(line["image"])),
                }
            )
            assert_written_for(replayer.image, {**line, **more, "lost": lost})


def as_json(log: list[list[Versioned]]) -> list[list[Json]]:
    return [
        [
            {"type": TYPE_NAMES[message.SPEC.key], "version": v, "data": to_json(message, v)}
            for message, v in batch
        ]
        for batch in log
    ]


def as_list(value: Json) -> list[Any]:
    assert isinstance(value, list)
    return value


def as_dict(value: Json) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value

"""Answers after each batch of real and of random metadata logs: what was kept encoded from the
batches before must not outlive its truth."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import cast

import pytest

from kraftline.metadata.features import LATEST_PRODUCTION
from kraftline.metadata.loader import Manifest
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema.api.describe_topic_partitions import DescribeTopicPartitionsRequest
from kraftline.schema.api.metadata import MetadataRequest
from tests.effort import rounds
from tests.fixtures.images.make import directories, file_of
from tests.metadata.generated import LogMaker
from tests.metadata.replaying import LogBatch, Replayer, batches_of, read_batches
from tests.oracle.answers import BrokerAnswers
from tests.recorder.compare import differences
from tests.recorder.frames import answered, frame
from tests.recorder.over_image import OurAnswers

pytestmark = pytest.mark.oracle

METADATA, DESCRIBE_TOPIC_PARTITIONS = 3, 75
LISTENERS = ("PLAINTEXT", "INTERNAL")
EVERYTHING = frame(DescribeTopicPartitionsRequest(), DESCRIBE_TOPIC_PARTITIONS, 0)
TOPICS = {version: frame(MetadataRequest(topics=None), METADATA, version) for version in (1, 6, 12)}


@pytest.mark.parametrize(
    "directory", directories(), ids=lambda path: file_of(path).name.partition(".jsonl")[0]
)
def test_real_logs(kafka_answers: BrokerAnswers, directory: Path) -> None:
    batches = list(read_batches(sorted(directory.glob("*.log"))))
    _follow(batches, kafka_answers, every=max(1, len(batches) // 40))


@pytest.mark.parametrize("seed", range(rounds(4)))
def test_random_logs(kafka_answers: BrokerAnswers, seed: int) -> None:
    log = LogMaker(Random(seed)).log(150)
    _follow(batches_of(log), kafka_answers, every=3)


def _follow(batches: Iterable[LogBatch], kafkas: BrokerAnswers, every: int) -> None:
    """Ours answers after each batch, and so keeps what it said; Kafka's after some."""
    ours = OurAnswers({"max.request.partition.size.limit": "250"})
    replayer = Replayer()
    compared = 0
    for number, batch in enumerate(batches):
        after = replayer.take(batch)
        images = [delta.image for delta in replayer.published[1:]] + [after]
        for delta, image in zip(replayer.published, images, strict=False):
            ours.cache.on_metadata_update(delta, image, cast(Manifest, None))
        said = {
            listener: [ours.answer(asked, listener) for asked in (EVERYTHING, *TOPICS.values())]
            for listener in LISTENERS
        }
        if number % every:
            continue
        kafkas.load(after.write(WriteOptions(LATEST_PRODUCTION, True)))
        for listener in LISTENERS:
            assert said[listener][0] == kafkas.answer(EVERYTHING, listener), batch
            for (version, asked), one in zip(TOPICS.items(), said[listener][1:], strict=True):
                other = kafkas.answer(asked, listener)
                assert one is not None
                assert other is not None
                assert not differences(
                    answered(one, METADATA, version), answered(other, METADATA, version)
                ), batch
        compared += len(after.topics.ids)
    assert compared

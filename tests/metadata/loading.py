"""What tests of the loader need: batches out of bare records, and publishers that remember."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from pathlib import Path

from kraftline.metadata.features import LATEST_PRODUCTION
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.loader import (
    CollectedFaults,
    FaultHandler,
    LeaderAndEpoch,
    Manifest,
    MetadataBatch,
    MetadataLoader,
    MetadataPublisher,
    Unreadable,
    read_log,
)
from kraftline.schema.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from kraftline.schema.types import Message, Uuid
from kraftline.storage.segment import SegmentReader

BEGIN = BeginTransactionRecord(name="test")
END = EndTransactionRecord()
ABORT = AbortTransactionRecord(reason="test")
VERSION = FeatureLevelRecord(name="metadata.version", feature_level=LATEST_PRODUCTION.level)


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=Uuid(name.encode().rjust(16, b"\1")))


def batch(
    base_offset: int, *records: Message | Unreadable, epoch: int = 1, size: int = 100
) -> MetadataBatch:
    """A batch written at the time `base_offset * 10`."""
    last = base_offset + len(records) - 1
    return MetadataBatch(base_offset, last, epoch, base_offset * 10, size, records)


def names(image: MetadataImage) -> list[str]:
    return sorted(image.topics.ids)


class Recorder(MetadataPublisher):
    """Remembers what it was told, and in `journal` together with others."""

    def __init__(self, name: str = "recorder", journal: list[str] | None = None) -> None:
        self._name = name
        self.journal = [] if journal is None else journal
        self.updates: list[tuple[MetadataDelta, MetadataImage, Manifest]] = []
        self.leaders: list[LeaderAndEpoch] = []
        self.fails = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def images(self) -> list[MetadataImage]:
        return [image for _, image, _ in self.updates]

    @property
    def offsets(self) -> list[int]:
        return [image.offset for image in self.images]

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        self.journal.append(f"{self._name} {image.offset}")
        self.updates.append((delta, image, manifest))
        if self.fails:
            raise RuntimeError("no room")

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        self.leaders.append(leader)

    async def close(self) -> None:
        self.journal.append(f"{self._name} closed")


class Driver:
    """A loader with its high watermark, which follows the commits unless it is set."""

    def __init__(self, faults: FaultHandler | None = None) -> None:
        self.faults = CollectedFaults()
        self.high_watermark: int | None = None
        self.follows = True
        self.loader = MetadataLoader(
            high_watermark=lambda: self.high_watermark, faults=faults or self.faults
        )

    async def commit(self, *batches: MetadataBatch) -> None:
        if self.follows:
            self.high_watermark = batches[-1].last_offset + 1
        await self.loader.handle_decoded_commit(batches)

    async def install(self, *publishers: MetadataPublisher) -> None:
        """Install, and wait until they have been initialized if they can be."""
        await self.loader.install_publishers(publishers)
        await self.loader.drained()


def drive(story: Callable[[Driver], Awaitable[None]], faults: FaultHandler | None = None) -> Driver:
    """Run a story on a loader, and close it."""

    async def run() -> Driver:
        driver = Driver(faults)
        async with driver.loader:
            await story(driver)
        return driver

    return asyncio.run(run())


@cache
def log_of(directory: Path) -> tuple[MetadataBatch, ...]:
    """Every batch of a metadata directory's segments."""
    return tuple(_read(sorted(directory.glob("*.log"))))


def _read(paths: Iterable[Path]) -> Iterable[MetadataBatch]:
    for path in paths:
        with SegmentReader(path) as reader:
            yield from read_log(reader)

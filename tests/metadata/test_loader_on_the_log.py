"""The loader on the embedded log: what is written comes back as images, and as snapshots."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.loader import (
    CollectedFaults,
    LeaderAndEpoch,
    MetadataLoader,
    SnapshotEmitter,
    SnapshotGenerator,
)
from kraftline.raft import EmbeddedLog
from kraftline.schema.metadata.frame import encode_record
from tests.metadata.loading import VERSION, Recorder, names, topic
from tests.raft.logs import NODE, formatted


def test_written_records_come_back_as_images_and_snapshots(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    faults = CollectedFaults()
    recorder = Recorder()

    async def write() -> MetadataImage:
        async with await EmbeddedLog.open(data, node_id=NODE) as log:
            loader = MetadataLoader(high_watermark=lambda: log.high_watermark, faults=faults)
            generator = SnapshotGenerator(SnapshotEmitter(log), faults, max_bytes=2000)
            async with loader:
                await loader.install_publishers([generator, recorder])
                registration = log.register(loader)
                await log.write([encode_record(VERSION, 0)])
                for n in range(60):
                    await log.write([encode_record(topic(f"t{n:02}"), 0)])
                await registration.caught_up()
                await loader.drained()
                await generator.idle()
                assert len(log.snapshots.ids) >= 1
                assert loader.leader == LeaderAndEpoch(NODE, log.epoch)
                return loader.image

    async def read_again() -> MetadataImage:
        async with await EmbeddedLog.open(data, node_id=NODE) as log:
            loader = MetadataLoader(high_watermark=lambda: log.high_watermark, faults=faults)
            async with loader:
                registration = log.register(loader, quick=True)
                await registration.caught_up()
                assert loader.metrics.handled_snapshots == 1
                assert loader.caught_up
                return loader.image

    image = asyncio.run(write())
    assert not faults.faults
    assert len(names(image)) == 60
    assert recorder.images[-1] is image
    again = asyncio.run(read_again())
    assert names(again) == names(image)
    # A new leader epoch began with a leader change record.
    assert again.provenance.last_epoch == image.provenance.last_epoch + 1
    assert not faults.faults

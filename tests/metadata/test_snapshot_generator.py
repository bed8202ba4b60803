"""When a snapshot is written, when not, and what is in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kraftline.metadata.faults import UnwritableMetadata
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.loader import (
    UNKNOWN_LEADER,
    CollectedFaults,
    LogDeltaManifest,
    Replay,
    SnapshotDirectory,
    SnapshotEmitter,
    SnapshotGenerator,
    SnapshotManifest,
    SnapshotsDisabled,
    image_of,
)
from kraftline.schema.metadata.frame import decode_record
from kraftline.storage.names import SnapshotId
from kraftline.storage.snapshot_file import SnapshotReader
from tests.metadata.loading import VERSION, Recorder, batch, drive, log_of, topic
from tests.metadata.loading import Driver as LoaderDriver
from tests.metadata.replaying import state
from tests.metadata.test_image_against_kafka import by_directory
from tests.oracle.dump import Decoder, dump_text

MINUTE = 60 * 1_000_000_000


class SlowEmitter:
    """Writes nothing; each image stays until it is let go."""

    def __init__(self) -> None:
        self.images: list[MetadataImage] = []
        self.at_once = self.most = 0
        self.gate = asyncio.Event()
        self.fails = False

    async def maybe_emit(self, image: MetadataImage) -> None:
        self.images.append(image)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.gate.wait()
        self.at_once -= 1
        if self.fails:
            raise OSError("no space left")

    @property
    def offsets(self) -> list[int]:
        return [image.offset for image in self.images]


class Bench:
    def __init__(self, max_bytes: int = 100, max_interval_ms: int = 3_600_000) -> None:
        self.now = 0
        self.emitter = SlowEmitter()
        self.emitter.gate.set()
        self.faults = CollectedFaults()
        self.generator = SnapshotGenerator(
            self.emitter,
            self.faults,
            max_bytes=max_bytes,
            max_interval_ms=max_interval_ms,
            clock_ns=lambda: self.now,
        )

    async def log(self, offset: int, size: int, aligned: bool = True) -> None:
        provenance = Provenance(offset, 1, 5, aligned)
        image = MetadataImage(provenance)
        manifest = LogDeltaManifest(provenance, UNKNOWN_LEADER, 1, 1, size)
        self.generator.on_metadata_update(MetadataDelta(EMPTY), image, manifest)
        await asyncio.sleep(0)

    def snapshot(self, offset: int) -> None:
        provenance = Provenance(offset, 1, 5, True)
        manifest = SnapshotManifest(provenance, 1)
        self.generator.on_metadata_update(MetadataDelta(EMPTY), MetadataImage(provenance), manifest)


def on_bench(story: Callable[[Bench], Awaitable[None]]) -> Bench:
    async def run() -> Bench:
        bench = Bench()
        await story(bench)
        bench.emitter.gate.set()
        await bench.generator.close()
        return bench

    return asyncio.run(run())


def test_snapshot_is_triggered_by_bytes(caplog: pytest.LogCaptureFixture) -> None:
    async def story(bench: Bench) -> None:
        for offset in range(7):
            await bench.log(offset, 40)
            await bench.generator.idle()

    with caplog.at_level(logging.INFO):
        bench = on_bench(story)
    assert bench.emitter.offsets == [2, 5]
    assert (
        "Creating new KRaft snapshot file snapshot 00000000000000000003-0000000001 "
        "because we have replayed at least 100 bytes."
    ) in caplog.messages


def test_snapshot_is_triggered_by_time(caplog: pytest.LogCaptureFixture) -> None:
    async def story(bench: Bench) -> None:
        for offset in range(5):
            bench.now += 31 * MINUTE
            await bench.log(offset, 1)

    with caplog.at_level(logging.INFO):
        bench = on_bench(story)
    assert bench.emitter.offsets == [1, 3]
    assert "because we have waited at least 60 minute(s)." in caplog.text


def test_interval_of_zero_means_by_bytes_only() -> None:
    async def run() -> Bench:
        bench = Bench(max_interval_ms=0)
        bench.now = 10**6 * MINUTE
        await bench.log(0, 99)
        return bench

    assert not asyncio.run(run()).emitter.images


def test_loaded_snapshot_starts_the_count_again() -> None:
    async def story(bench: Bench) -> None:
        await bench.log(0, 90)
        bench.now += 59 * MINUTE
        bench.snapshot(10)
        await bench.log(11, 90)
        bench.now += 59 * MINUTE
        await bench.log(12, 9)
        await bench.log(13, 1)

    assert on_bench(story).emitter.offsets == [13]


def test_two_snapshots_are_never_written_at_once() -> None:
    async def story(bench: Bench) -> None:
        bench.emitter.gate.clear()
        for offset in range(10):
            await bench.log(offset, 100)
            assert bench.generator.is_emitting
        assert bench.emitter.offsets == [0]
        bench.emitter.gate.set()
        await bench.generator.idle()
        # What came meanwhile counts.
        await bench.log(10, 0)
        await bench.generator.idle()

    bench = on_bench(story)
    assert bench.emitter.offsets == [0, 10]
    assert bench.emitter.most == 1


def test_snapshot_waits_for_an_image_that_ends_with_a_batch() -> None:
    async def story(bench: Bench) -> None:
        await bench.log(0, 200, aligned=False)
        await bench.log(1, 0)

    assert on_bench(story).emitter.offsets == [1]


def test_no_snapshot_after_a_loading_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def story(bench: Bench) -> None:
        bench.generator.disabled.disable("metadata loading fault")
        bench.generator.disabled.disable("another")
        await bench.log(0, 200)

    bench = on_bench(story)
    assert not bench.emitter.images
    assert (
        "Not emitting snapshot 00000000000000000001-0000000001 despite the fact that "
        "we have replayed at least 100 bytes because snapshots are disabled; metadata loading fault"
    ) in caplog.messages


def test_fault_in_writing_is_told_and_the_next_may_go_well() -> None:
    async def story(bench: Bench) -> None:
        bench.emitter.fails = True
        await bench.log(0, 100)
        await bench.generator.idle()
        bench.emitter.fails = False
        await bench.log(1, 100)

    bench = on_bench(story)
    (fault,) = bench.faults.faults
    assert str(fault) == "KRaft snapshot file generation error: no space left"
    assert fault.publisher == "SnapshotGenerator"
    assert bench.emitter.offsets == [0, 1]


def test_closing_waits_for_the_snapshot_under_way() -> None:
    async def run() -> None:
        bench = Bench()
        bench.emitter.gate.clear()
        await bench.log(0, 100)
        closing = asyncio.create_task(bench.generator.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        assert bench.generator.disabled.reason == "we are shutting down"
        bench.emitter.gate.set()
        await closing
        assert not bench.generator.is_emitting

    asyncio.run(run())


def test_loader_drives_the_generator(tmp_path: Path) -> None:
    faults = CollectedFaults()
    emitter = SnapshotEmitter(SnapshotDirectory(tmp_path))
    disabled = SnapshotsDisabled()
    generator = SnapshotGenerator(emitter, faults, max_bytes=150, disabled=disabled)
    recorder = Recorder()

    async def story(driver: LoaderDriver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(generator, recorder)
        for offset in range(1, 5):
            await driver.commit(batch(offset, topic(f"t{offset}")))
            await generator.idle()

    drive(story)
    assert not faults.faults
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000003-0000000001.checkpoint",
        "00000000000000000005-0000000001.checkpoint",
    ]
    assert 0 <= emitter.age_ms < 600_000
    assert emitter.generated_bytes == max(path.stat().st_size for path in tmp_path.iterdir())
    assert recorder.offsets == [0, 1, 2, 3, 4]


def test_existing_snapshot_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    image = image_of([batch(0, VERSION)])
    emitter = SnapshotEmitter(SnapshotDirectory(tmp_path))
    path = asyncio.run(emitter.maybe_emit(image))
    assert path is not None
    before = Path(path).stat()
    assert asyncio.run(emitter.maybe_emit(image)) is None
    assert Path(path).stat() == before
    assert "because it already exists." in caplog.text


def test_snapshot_has_batches_of_kafkas_size(tmp_path: Path) -> None:
    image = image_of([batch(0, VERSION, *(topic(f"t{n:04}") for n in range(2500)))])
    path = asyncio.run(SnapshotEmitter(SnapshotDirectory(tmp_path)).maybe_emit(image))
    assert path is not None
    with SnapshotReader(path) as reader:
        sizes = [batch.count for batch in reader.batches()]
    # Kafka hands over 1024 records at a time, and its batches take what fits into 8 MB.
    assert sum(size or 0 for size in sizes) == 2501
    assert sizes == [2501]


def test_image_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    emitter = SnapshotEmitter(SnapshotDirectory(tmp_path))
    with pytest.raises(UnwritableMetadata):
        asyncio.run(emitter.maybe_emit(image_of([batch(0, topic("a"))])))
    assert not list(tmp_path.iterdir())


@by_directory
def test_written_snapshot_reads_back_to_the_same_image(directory: Path, tmp_path: Path) -> None:
    image = image_of(log_of(directory))
    path = asyncio.run(SnapshotEmitter(SnapshotDirectory(tmp_path)).maybe_emit(image))
    assert path is not None
    replaying = Replay()
    with SnapshotReader(path) as reader:
        assert reader.id == SnapshotId(image.offset + 1, image.provenance.last_epoch)
        again = replaying.load_snapshot(reader).image
        first = next(reader.records())
    assert not replaying.faults.faults
    assert again.provenance == image.provenance
    assert state(again) == state(image)
    # The metadata version comes first: it may decide how the rest is read.
    record, _ = decode_record(first.value or b"")
    assert record.name == "metadata.version"  # type: ignore[attr-defined]  # a FeatureLevelRecord


@pytest.mark.oracle
def test_kafkas_tool_reads_what_the_generator_wrote(tmp_path: Path) -> None:
    directories = by_directory.args[1]
    paths = []
    for number, directory in enumerate(directories):
        folder = tmp_path / str(number)
        folder.mkdir()
        image = image_of(log_of(directory))
        path = asyncio.run(SnapshotEmitter(SnapshotDirectory(folder)).maybe_emit(image))
        assert path is not None
        paths.append(Path(path))
    found = dump_text(paths, Decoder.METADATA)
    for written in paths:
        text = found[written]
        assert "SnapshotFooter" in text
        assert "isvalid: true" in text
        for complaint in ("isvalid: false", "Exception", "rror", "Could not"):
            assert complaint not in text, written

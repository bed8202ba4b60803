"""A snapshot replaces everything: what it does not name is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kraftline.metadata.image import Provenance
from kraftline.metadata.loader import Replay, SnapshotManifest
from kraftline.schema.metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    UserScramCredentialRecord,
)
from kraftline.schema.metadata.client_quota_record import EntityData
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.types import Message
from kraftline.storage.names import SnapshotId
from kraftline.storage.snapshot_file import SnapshotReader, SnapshotWriter
from tests.metadata.loading import BEGIN, VERSION, Driver, Recorder, batch, drive, names, topic
from tests.metadata.replaying import replay, state


def snapshot(
    directory: Path, end: int, records: Sequence[Message], kraft_version: int = 0, epoch: int = 2
) -> Path:
    with SnapshotWriter(
        directory,
        SnapshotId(end, epoch),
        last_contained_log_timestamp=777,
        kraft_version=kraft_version,
    ) as writer:
        writer.append([encode_record(each, each.SPEC.versions.last) for each in records])
        writer.freeze()
    return Path(writer.path)


async def load(driver: Driver, path: Path) -> None:
    with SnapshotReader(path) as reader:
        assert reader.id is not None
        driver.high_watermark = driver.high_watermark or reader.id.end_offset
        await driver.loader.handle_load_snapshot(reader)


EVERYTHING = (
    VERSION,
    FeatureLevelRecord(name="group.version", feature_level=1),
    topic("old"),
    RegisterBrokerRecord(broker_id=1),
    ConfigRecord(resource_type=4, resource_name="1", name="x", value="y"),
    ClientQuotaRecord(
        entity=(EntityData(entity_type="user", entity_name="u"),), key="k", value=1.0
    ),
    AccessControlEntryRecord(
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:u",
        host="*",
        operation=2,
        permission_type=3,
    ),
    UserScramCredentialRecord(name="u", mechanism=1, iterations=4096),
)


def test_snapshot_drops_what_it_does_not_name(tmp_path: Path) -> None:
    recorder = Recorder()
    new = [VERSION, topic("new")]

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, *EVERYTHING))
        await driver.install(recorder)
        await load(driver, snapshot(tmp_path, 20, new))

    driver = drive(story)
    delta, image, manifest = recorder.updates[-1]
    assert isinstance(manifest, SnapshotManifest)
    assert state(image) == state(replay(new))
    assert image.provenance == manifest.provenance == Provenance(19, 2, 777, True)
    assert delta.image is recorder.images[0]
    assert delta.topics is not None
    assert len(delta.topics.deleted) == 1
    assert driver.loader.metrics.handled_snapshots == 1
    assert driver.loader.last_applied_offset == 19


def test_next_producer_id_stays_when_a_snapshot_does_not_name_it(tmp_path: Path) -> None:
    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION, ProducerIdsRecord(next_producer_id=5000)))
        await load(driver, snapshot(tmp_path, 20, [VERSION]))

    assert drive(story).loader.image.producer_ids.next_producer_id == 5000


def test_snapshot_ends_an_open_transaction(tmp_path: Path) -> None:
    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION, BEGIN, topic("lost")))
        await load(driver, snapshot(tmp_path, 20, [VERSION, topic("a")]))
        await driver.commit(batch(20, topic("b")))

    driver = drive(story)
    assert names(driver.loader.image) == ["a", "b"]
    assert not driver.faults.faults


def test_transaction_record_in_a_snapshot_is_a_fault(tmp_path: Path) -> None:
    async def story(driver: Driver) -> None:
        await load(driver, snapshot(tmp_path, 20, [VERSION, BEGIN, topic("a")]))

    driver = drive(story)
    (fault,) = driver.faults.faults
    assert str(fault).startswith(
        "Error loading metadata log record 1 in snapshot at offset 19: Unknown metadata record "
        "type BeginTransactionRecord"
    )
    assert names(driver.loader.image) == ["a"]


def test_snapshot_without_its_footer_is_a_fault_and_the_image_stays(tmp_path: Path) -> None:
    path = snapshot(tmp_path, 20, [VERSION, topic("new")])
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-5])

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION, topic("old")))
        await load(driver, path)

    driver = drive(story)
    (fault,) = driver.faults.faults
    assert str(fault).startswith(
        "Unhandled fault in MetadataLoader#handleLoadSnapshot. Snapshot offset was 19: "
    )
    assert names(driver.loader.image) == ["old"]


def test_snapshot_that_formatting_left_is_passed_over(tmp_path: Path) -> None:
    async def story(driver: Driver) -> None:
        await load(driver, snapshot(tmp_path, 0, [VERSION], epoch=0))

    driver = drive(story)
    assert driver.loader.image.is_empty
    assert driver.loader.metrics.handled_snapshots == 0


def test_kraft_version_of_a_snapshot_is_a_finalized_feature(tmp_path: Path) -> None:
    async def story(driver: Driver) -> None:
        await load(driver, snapshot(tmp_path, 20, [VERSION], kraft_version=1))

    assert drive(story).loader.metrics.finalized_levels["kraft.version"] == 1


def test_synchronous_replay_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    replaying = Replay()
    replaying.take(batch(0, *EVERYTHING))
    replaying.flush()
    with SnapshotReader(snapshot(tmp_path, 20, [VERSION, topic("a")])) as reader:
        published = replaying.load_snapshot(reader)
    assert published.image.provenance == Provenance(19, 2, 777, True)
    replaying.take(batch(20, topic("b")))
    replaying.flush()
    assert names(replaying.image) == ["a", "b"]
    assert replaying.image.client_quotas.is_empty


def test_event_loop_has_its_turn_while_a_snapshot_loads(tmp_path: Path) -> None:
    records = [VERSION, *(topic(f"t{n}") for n in range(8_000))]
    with SnapshotWriter(tmp_path, SnapshotId(9_000, 2), max_batch_bytes=4096) as writer:
        for each in records:
            writer.append([encode_record(each, 0)])
        writer.freeze()
    turns = 0

    async def story(driver: Driver) -> None:
        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        await load(driver, Path(writer.path))
        task.cancel()

    driver = drive(story)
    assert len(driver.loader.image.topics.by_id) == 8_000
    assert turns > 1

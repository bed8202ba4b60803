"""Who is told what, when, and in which order."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from kraftline.metadata.features import from_level
from kraftline.metadata.image import EMPTY
from kraftline.metadata.loader import (
    UNKNOWN_LEADER,
    LeaderAndEpoch,
    LoaderClosed,
    LogDeltaManifest,
    PublisherRefused,
    SnapshotManifest,
)
from kraftline.records.control import Control, ControlType
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.metadata import FeatureLevelRecord, UserScramCredentialRecord
from tests.metadata.loading import BEGIN, END, VERSION, Driver, Recorder, batch, drive, names, topic
from tests.metadata.replaying import state


def test_publishers_are_told_in_the_order_of_installation() -> None:
    journal: list[str] = []

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(Recorder("b", journal), Recorder("a", journal))
        await driver.install(Recorder("c", journal))
        await driver.commit(batch(1, topic("x")))
        assert driver.loader.publishers == ("b", "a", "c")

    drive(story)
    assert journal == ["b 0", "a 0", "c 0", "b 1", "a 1", "c 1", "b closed", "a closed", "c closed"]


def test_many_batches_of_a_commit_are_one_publication() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(recorder)
        await driver.loader.handle_leader_change(3, 7)
        await driver.commit(batch(1, topic("a"), size=10), batch(2, topic("b"), size=20))

    drive(story)
    delta, image, manifest = recorder.updates[-1]
    assert (recorder.offsets, names(image)) == ([0, 2], ["a", "b"])
    assert isinstance(manifest, LogDeltaManifest)
    assert (manifest.batches, manifest.bytes, manifest.leader) == (2, 30, LeaderAndEpoch(3, 7))
    assert manifest.provenance == image.provenance
    assert delta.image.offset == 0


def test_gate_stays_closed_while_the_high_watermark_is_unknown() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        driver.follows = False
        await driver.install(recorder)
        await driver.commit(batch(0, VERSION))
        assert not driver.loader.caught_up
        assert not recorder.updates
        assert driver.loader.last_applied_offset == -1
        assert driver.loader.image.offset == 0  # the loader itself goes on
        driver.high_watermark = 1
        await driver.commit(batch(1, topic("a")))
        await driver.loader.drained()

    driver = drive(story)
    assert driver.loader.caught_up
    assert recorder.offsets == [1]


def test_gate_stays_closed_while_behind_the_high_watermark() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        driver.follows, driver.high_watermark = False, 3
        await driver.install(recorder)
        await driver.commit(batch(0, VERSION))
        await driver.commit(batch(1, topic("a")))
        assert not recorder.updates
        await driver.commit(batch(2, topic("b")))
        await driver.loader.drained()

    drive(story)
    assert recorder.offsets == [2]


def test_gate_stays_closed_while_no_metadata_version_is_known() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        await driver.install(recorder)
        await driver.commit(batch(0))
        await driver.commit(batch(0, topic("a")))
        assert not recorder.updates
        await driver.commit(batch(1, VERSION))
        await driver.loader.drained()

    drive(story)
    assert recorder.offsets == [1]


def test_gate_stays_open_when_the_high_watermark_moves_on() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(recorder)
        driver.follows, driver.high_watermark = False, 100
        await driver.commit(batch(1, topic("a")))

    drive(story)
    assert recorder.offsets == [0, 1]


def test_waiting_publisher_is_initialized_once_the_high_watermark_is_known() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        driver.follows = False
        await driver.commit(batch(0, VERSION))
        await driver.install(recorder)
        assert not recorder.updates
        driver.high_watermark = 1
        async with asyncio.timeout(5):
            while not recorder.updates:
                await asyncio.sleep(0.01)
        assert driver.loader.last_applied_offset == 0

    drive(story)


def test_late_publisher_gets_a_complete_delta_first() -> None:
    early, late = Recorder("early"), Recorder("late")

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(early)
        await driver.commit(batch(1, topic("a")), batch(2, topic("b")))
        await driver.loader.handle_leader_change(1, 4)
        await driver.install(late)
        await driver.commit(batch(3, topic("c")))

    drive(story)
    assert late.offsets == [2, 3]
    delta, image, manifest = late.updates[0]
    assert isinstance(manifest, SnapshotManifest)
    assert manifest.provenance == image.provenance
    assert delta.image is EMPTY
    assert state(delta.apply(image.provenance)) == state(image)
    assert late.leaders == [LeaderAndEpoch(1, 4)]
    assert early.leaders == [UNKNOWN_LEADER, LeaderAndEpoch(1, 4)]
    assert early.offsets == [0, 2, 3]


def test_complete_delta_has_what_the_metadata_version_cannot_write() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        version = FeatureLevelRecord(name="metadata.version", feature_level=7)
        scram = UserScramCredentialRecord(name="u", mechanism=1, iterations=4096)
        await driver.commit(batch(0, version, scram))
        await driver.install(recorder)

    driver = drive(story)
    ((delta, image, _),) = recorder.updates
    assert not driver.faults.faults
    assert delta.apply(image.provenance) == image
    assert image.features.metadata_version is not None
    assert image.features.metadata_version.level == 7


def test_publisher_never_sees_a_part_of_a_transaction() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.commit(batch(1, BEGIN, topic("a")))
        await driver.install(recorder)
        await driver.commit(batch(3, topic("b")))
        assert [names(image) for image in recorder.images] == [[]]
        await driver.commit(batch(4, END))

    drive(story)
    assert [names(image) for image in recorder.images] == [[], ["a", "b"]]
    delta, _, _ = recorder.updates[-1]
    assert delta.image is recorder.images[0]


def test_each_delta_starts_from_the_image_before() -> None:
    recorder = Recorder()

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(recorder)
        for offset in range(1, 20):
            await driver.commit(batch(offset, topic(f"t{offset}")))

    drive(story)
    for (_, before, _), (delta, image, _) in zip(
        recorder.updates, recorder.updates[1:], strict=False
    ):
        assert delta.image is before
        assert image.offset == before.offset + 1


def test_name_can_be_installed_only_once() -> None:
    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        one = Recorder("one")
        await driver.install(one)
        with pytest.raises(PublisherRefused, match="one, which is already installed"):
            await driver.install(one)
        with pytest.raises(PublisherRefused, match="named one, but there is already"):
            await driver.install(Recorder("two"), Recorder("one"))
        assert driver.loader.publishers == ("one",)

    drive(story)


def test_removed_publisher_is_closed_and_told_nothing_more() -> None:
    recorder, other = Recorder("one"), Recorder("other")

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(recorder, other)
        await driver.loader.remove_and_close_publisher(recorder)
        await driver.commit(batch(1, topic("a")))
        with pytest.raises(PublisherRefused, match="one, which is not installed"):
            await driver.loader.remove_and_close_publisher(recorder)

    drive(story)
    assert recorder.journal == ["one 0", "one closed"]
    assert other.offsets == [0, 1]


def test_waiting_publishers_are_closed_before_the_others() -> None:
    journal: list[str] = []

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(Recorder("a", journal), Recorder("b", journal))
        # Installed last, and closed before its first image.
        loop = asyncio.get_running_loop()
        late = loop.create_task(driver.loader.install_publishers([Recorder("late", journal)]))
        await asyncio.sleep(0)
        driver.loader.begin_shutdown()
        await late

    drive(story)
    assert journal == ["a 0", "b 0", "late closed", "a closed", "b closed"]


def test_closed_loader_takes_nothing() -> None:
    driver = drive(_nothing)

    async def after() -> None:
        with pytest.raises(LoaderClosed):
            await driver.loader.handle_decoded_commit([batch(0, VERSION)])

    asyncio.run(after())


def test_queue_is_worked_off_before_the_loader_closes() -> None:
    async def story(driver: Driver) -> None:
        for offset in range(5):
            asyncio.get_running_loop().create_task(driver.commit(batch(offset, VERSION)))
        await asyncio.sleep(0)
        driver.loader.begin_shutdown()

    assert drive(story).loader.image.offset == 4


def test_long_commit_leaves_the_event_loop_its_turn() -> None:
    turns = 0

    async def story(driver: Driver) -> None:
        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        await driver.commit(*(batch(n, VERSION, size=1) for n in range(30_000)))
        task.cancel()

    driver = drive(story)
    assert turns > 3
    assert driver.loader.image.offset == 29_999


def test_kraft_version_of_a_control_record_is_a_finalized_feature() -> None:
    async def story(driver: Driver) -> None:
        control = Control(ControlType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=1))
        first = batch(0)
        await driver.commit(
            msgspec.structs.replace(first, last_offset=0, controls=[control]), batch(1, VERSION)
        )

    metrics = drive(story).loader.metrics
    assert metrics.finalized_levels == {"kraft.version": 1, "metadata.version": 30}


def test_metrics_say_what_was_applied() -> None:
    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION, topic("a")), batch(2, topic("b")))
        await driver.loader.handle_leader_change(5, 2)

    metrics = drive(story).loader.metrics
    assert metrics.last_applied_offset == 2
    assert (metrics.lag(3), metrics.lag(13), metrics.lag(None)) == (0, 10, None)
    assert metrics.lag_ms(1020) == 1000
    assert (metrics.batch_sizes.count, metrics.batch_sizes.total) == (2, 3)
    assert metrics.batch_processing_ns.count == 2
    assert (metrics.publications, metrics.publication_ns.count) == (1, 1)
    assert metrics.last_applied.last_log_time_ms == 20
    assert metrics.metadata_version == from_level(30)
    assert metrics.controller_id == 5
    assert (metrics.load_faults, metrics.publish_faults) == (0, 0)


async def _nothing(driver: Driver) -> None:
    pass

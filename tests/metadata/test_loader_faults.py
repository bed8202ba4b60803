"""What should not happen is told with all that is known, and stops only what it must."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftline.errors import Corrupt
from kraftline.metadata.loader import (
    FatalFault,
    MetadataBatch,
    Replay,
    RoleFaultHandler,
    SnapshotsDisabled,
    Unreadable,
    decode_batches,
    read_log,
)
from kraftline.metadata.loader.fault_handling import content
from kraftline.records.framing import batches
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema.metadata import (
    ConfigRecord,
    DelegationTokenRecord,
    RemoveTopicRecord,
    UserScramCredentialRecord,
)
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.types import Uuid
from kraftline.storage.segment import SegmentReader
from tests.metadata.loading import VERSION, Driver, Recorder, batch, drive, names, topic

UNKNOWN = RemoveTopicRecord(topic_id=Uuid(b"0123456789abcdef"))


def test_fault_in_a_record_names_offset_and_content() -> None:
    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION), batch(1, topic("a"), UNKNOWN, topic("b")))

    driver = drive(story)
    (fault,) = driver.faults.faults
    assert (fault.offset, fault.record, fault.publisher) == (2, UNKNOWN, None)
    assert str(fault) == (
        "Error loading metadata log record from offset 2: Unable to delete topic with id "
        "MDEyMzQ1Njc4OWFiY2RlZg: no such topic found.. The record: "
        'RemoveTopicRecord{"topicId":"MDEyMzQ1Njc4OWFiY2RlZg"}'
    )
    assert names(driver.loader.image) == ["a", "b"]
    assert driver.loader.metrics.load_faults == 1


def test_every_bad_record_of_a_batch_is_a_fault_of_its_own() -> None:
    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION, UNKNOWN, UNKNOWN, topic("a"), UNKNOWN))

    driver = drive(story)
    assert [fault.offset for fault in driver.faults.faults] == [1, 2, 4]
    assert names(driver.loader.image) == ["a"]


def test_record_that_cannot_be_decoded_is_a_fault_and_the_others_count() -> None:
    values = [encode_record(VERSION, 0), b"\x01\x02\x00\xff", None, encode_record(topic("a"), 0)]
    records = [Record(offset, 5, None, value) for offset, value in enumerate(values)]
    raw = build_batch(records, partition_leader_epoch=1)

    async def story(driver: Driver) -> None:
        driver.high_watermark = 4
        await driver.loader.handle_commit(batches(raw))

    driver = drive(story)
    one, two = driver.faults.faults
    assert (one.offset, two.offset) == (1, 2)
    assert "4 bytes, beginning with 010200" in str(one)
    assert "a metadata record without a value" in str(two)
    assert names(driver.loader.image) == ["a"]
    assert driver.loader.image.provenance.last_epoch == 1


def test_record_without_a_value_is_a_fault_and_the_others_count(tmp_path: Path) -> None:
    values = [encode_record(VERSION, 0), None, encode_record(topic("a"), 0)]
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(build_batch([Record(n, 5, None, each) for n, each in enumerate(values)]))
    replay = Replay()
    with SegmentReader(path) as reader:
        for each in read_log(reader):
            replay.take(each)
    replay.flush()
    (fault,) = replay.faults.faults
    assert fault.offset == 1
    assert "a metadata record without a value" in str(fault)
    assert names(replay.image) == ["a"]
    (same,) = decode_batches(batches(path.read_bytes()))
    assert isinstance(same.records[1], Unreadable)


def test_batch_that_is_not_of_a_metadata_log_is_a_fault_of_the_commit() -> None:
    records = [Record(0, 5, None, encode_record(VERSION, 0))]
    raw = build_batch(records, last_offset=3)
    with pytest.raises(Corrupt, match="1 records in a batch of 4 offsets"):
        list(decode_batches(batches(raw)))

    async def story(driver: Driver) -> None:
        await driver.loader.handle_commit(batches(raw))

    (fault,) = drive(story).faults.faults
    assert str(fault).startswith(
        "Unhandled fault in MetadataLoader#handleCommit. Last image offset was -1: "
    )


def test_fault_in_reading_leaves_what_came_before() -> None:
    def broken() -> Iterator[MetadataBatch]:
        yield batch(0, VERSION, topic("a"))
        raise Corrupt("the disk lost it", file="x.log")

    async def story(driver: Driver) -> None:
        driver.high_watermark = 2
        await driver.loader.handle_decoded_commit(broken())
        assert driver.loader.image.offset == -1
        await driver.commit(batch(2, topic("b")))

    driver = drive(story)
    assert len(driver.faults.faults) == 1
    assert names(driver.loader.image) == ["a", "b"]


def test_fault_in_a_publisher_names_it_and_does_not_stop_the_others() -> None:
    one, two, three = Recorder("one"), Recorder("two"), Recorder("three")

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(one, two, three)
        two.fails = True
        await driver.commit(batch(1, topic("a")))
        two.fails = False
        await driver.commit(batch(2, topic("b")))

    driver = drive(story)
    (fault,) = driver.faults.faults
    assert fault.publisher == "two"
    assert str(fault) == (
        "Unhandled error publishing the new metadata image ending at 1 with publisher two: no room"
    )
    assert one.offsets == two.offsets == three.offsets == [0, 1, 2]
    assert driver.loader.metrics.publish_faults == 1
    assert driver.loader.last_applied_offset == 2


def test_publisher_that_fails_at_first_is_out_and_closed() -> None:
    good, bad = Recorder("good"), Recorder("bad")
    bad.fails = True

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(bad, good)
        await driver.commit(batch(1, topic("a")))
        assert driver.loader.publishers == ("good",)

    driver = drive(story)
    assert str(driver.faults.faults[0]) == (
        "Unhandled error initializing bad with a snapshot at offset 0: no room"
    )
    assert bad.journal == ["bad 0", "bad closed"]
    assert good.offsets == [0, 1]


def test_fault_at_leader_change_and_close_names_the_publisher() -> None:
    class Bad(Recorder):
        def on_controller_change(self, leader: object) -> None:
            if self.fails:
                raise RuntimeError("whoever")

        async def close(self) -> None:
            raise RuntimeError("no end")

    bad, good = Bad("bad"), Recorder("good")

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(bad, good)
        bad.fails = True
        await driver.loader.handle_leader_change(1, 2)

    one, two = drive(story).faults.faults
    assert str(one).endswith("with publisher bad: whoever")
    assert str(two) == "Got unexpected exception while closing publisher bad: no end"
    assert good.journal == ["good 0", "good closed"]


def test_fatal_fault_stops_the_loader_of_a_controller(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    disabled = SnapshotsDisabled()
    handler = RoleFaultHandler(fatal=True, action=disabled.on_loading_fault)

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(recorder)
        waiting = asyncio.create_task(driver.commit(batch(1, UNKNOWN)))
        behind = asyncio.create_task(driver.commit(batch(2, topic("a"))))
        with pytest.raises(FatalFault) as error:
            await waiting
        assert error.value.fault.offset == 1
        for later in (behind, driver.commit(batch(3, topic("b"))), driver.loader.stopped()):
            with pytest.raises(FatalFault):
                await later
        assert driver.loader.failure is error.value

    with caplog.at_level(logging.ERROR):
        driver = drive(story, handler)
    assert driver.loader.image.offset == 0
    assert disabled.reason == "metadata loading fault"
    assert recorder.journal == ["recorder 0", "recorder closed"]
    assert "Encountered metadata loading fatal fault: Error loading" in caplog.text


def test_fault_is_logged_on_a_broker_and_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    handler = RoleFaultHandler(fatal=False)

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION, UNKNOWN, topic("a")))

    with caplog.at_level(logging.ERROR):
        driver = drive(story, handler)
    assert names(driver.loader.image) == ["a"]
    assert handler.count == 1
    assert "Encountered metadata loading fault: Error loading metadata log record" in caplog.text


def test_fatal_fault_of_a_publisher_still_lets_the_others_have_their_turn() -> None:
    one, two = Recorder("one"), Recorder("two")

    async def story(driver: Driver) -> None:
        await driver.commit(batch(0, VERSION))
        await driver.install(one, two)
        one.fails = True
        with pytest.raises(FatalFault, match="with publisher one"):
            await driver.commit(batch(1, topic("a")))

    drive(story, RoleFaultHandler(fatal=True))
    assert two.offsets == [0, 1]


def test_content_of_a_record_has_no_secrets() -> None:
    scram = UserScramCredentialRecord(
        name="bob", mechanism=1, salt=b"pepper", stored_key=b"s1", server_key=b"s2", iterations=4096
    )
    assert content(scram) == (
        'UserScramCredentialRecord{"name":"bob","mechanism":1,"salt":"(redacted)",'
        '"storedKey":"(redacted)","serverKey":"(redacted)","iterations":4096}'
    )
    for name in ("ssl.key.password", "listener.name.in.ssl.keystore.key", "My.Plugin.Passphrase"):
        secret = ConfigRecord(resource_type=4, resource_name="1", name=name, value="hush")
        assert "hush" not in content(secret)
    token = DelegationTokenRecord(owner="User:a", token_id="hush")
    assert "hush" not in content(token)
    plain = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="7")
    assert '"value":"7"' in content(plain)
    assert content(Unreadable(None, Corrupt("x"))) == "no value"

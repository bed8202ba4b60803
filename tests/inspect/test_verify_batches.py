"""Damage to batches: each kind is found where it is, and what follows is still read."""

from __future__ import annotations

import os
import resource
import struct
from pathlib import Path

import pytest

from kraftline.records import Codec, Record, build_batch
from kraftline.records.batch import DefaultBatch
from kraftline.records.write import encode_records, frame_batch
from tests.inspect.damage import (
    ATTRIBUTES,
    COUNT,
    EPOCH,
    FIXTURES,
    LAST_DELTA,
    LOG,
    MAX_TIMESTAMP,
    SECOND,
    TOPICS,
    change_records,
    cleanly_stopped,
    codes,
    copy,
    cut,
    drop_indexes,
    findings,
    flip,
    notes,
    patch,
    positions,
    set_field,
)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    found = copy(TOPICS / "mixed-0", tmp_path)
    drop_indexes(found)
    return found


def newest(partition: Path) -> Path:
    return max(partition.glob("*.log"))


def test_a_flipped_bit_is_a_wrong_checksum_with_its_place(partition: Path) -> None:
    log = newest(partition)
    where = positions(log)[1]
    flip(log, where + 70)
    (found,) = findings(partition)
    assert (found.code, found.position, found.file) == ("batch-crc", where, str(log))
    assert found.offset is not None
    assert found.start == log.read_bytes()[where : where + 48]
    assert "cuts the log here" in found.meaning


def test_every_flipped_bit_of_a_batch_is_noticed(tmp_path: Path) -> None:
    partition = copy(TOPICS / "broker-gzip-0", tmp_path)
    log = partition / LOG
    whole = log.read_bytes()
    unseen = []
    for at in range(min(len(whole), 160)):
        log.write_bytes(whole)
        flip(log, at)
        if not codes(partition) and not notes(partition):
            unseen.append(at)
    # Neither the base offset nor the leader epoch is under the checksum; a log of one batch has
    # little to compare an offset with, and its epoch only with the checkpoint.
    assert unseen == [] or set(unseen) <= set(range(8)) | set(range(12, 16))


def test_a_wrong_length_does_not_hide_the_batches_behind_it(partition: Path) -> None:
    log = newest(partition)
    places = positions(log)
    patch(log, places[1] + 8, struct.pack(">i", 2**31 - 1))
    found = findings(partition)
    assert [f.code for f in found] == ["batch-framing"]
    assert found[0].position == places[1]


def test_an_unknown_magic_is_named(partition: Path) -> None:
    log = newest(partition)
    where = positions(log)[1]
    patch(log, where + 16, b"\x07")
    (found,) = findings(partition)
    assert (found.code, found.position) == ("batch-magic", where)


def test_a_half_written_tail_is_a_note_where_a_broker_may_be_writing(partition: Path) -> None:
    log = newest(partition)
    cut(log, log.stat().st_size - 5)
    assert [n.code for n in notes(partition) if n.code.startswith("tail")] == ["tail-partial"]
    assert codes(partition) == []


def test_a_half_written_tail_is_a_finding_after_a_clean_stop(partition: Path) -> None:
    log = newest(partition)
    cut(log, log.stat().st_size - 5)
    assert "tail-partial" in codes(cleanly_stopped(partition))


def test_a_half_written_tail_is_a_finding_in_an_older_segment(partition: Path) -> None:
    log = partition / LOG
    cut(log, log.stat().st_size - 5)
    assert codes(partition) == ["tail-partial"]


def test_preallocated_zeros_are_fine_only_in_the_newest_segment(partition: Path) -> None:
    with newest(partition).open("ab") as file:
        file.write(bytes(1000))
    assert codes(partition) == []
    with (partition / LOG).open("ab") as file:
        file.write(bytes(1000))
    assert codes(partition) == ["tail-zeros"]


def test_half_a_batch_before_preallocated_zeros_is_a_note(partition: Path) -> None:
    log = newest(partition)
    size = log.stat().st_size
    cut(log, size - 20)
    with log.open("ab") as file:
        file.write(bytes(1020))
    assert codes(partition) == []
    assert "tail-partial" in [n.code for n in notes(partition)]


@pytest.mark.parametrize("count", [-1, 2**31 - 1, 1])
def test_a_wrong_count_of_records_is_found(partition: Path, count: int) -> None:
    log = partition / LOG
    where = positions(log)[0]
    set_field(log, where, COUNT, "i", count)
    found = findings(partition)
    assert [f.code for f in found] == ["batch-count"]
    assert found[0].position == where


def test_offsets_that_do_not_rise_are_found(partition: Path) -> None:
    log = newest(partition)
    places = positions(log)
    patch(log, places[1], struct.pack(">q", 0))
    assert "batch-offset" in codes(partition)


def test_an_offset_below_the_segments_name_is_found(partition: Path) -> None:
    logs = sorted(partition.glob("*.log"))
    patch(logs[1], 0, struct.pack(">q", 1))
    found = [f for f in findings(partition) if f.code == "batch-offset"]
    assert any("below the segment's base offset" in f.problem for f in found)


def test_a_segment_that_reaches_into_the_next_is_found(partition: Path) -> None:
    logs = sorted(partition.glob("*.log"))
    last = positions(logs[0])[-1]
    (delta,) = struct.unpack_from(">i", logs[0].read_bytes(), last + LAST_DELTA)
    set_field(logs[0], last, LAST_DELTA, "i", delta + 5)
    found = [f for f in findings(partition) if f.code == "batch-offset"]
    assert any("the next segment begins" in f.problem for f in found)


def test_a_record_outside_its_batch_is_found(partition: Path) -> None:
    log = partition / LOG
    set_field(log, positions(log)[0], LAST_DELTA, "i", 0)
    assert "record-framing" in codes(partition) or "batch-offset" in codes(partition)


def test_a_wrong_newest_time_is_found(partition: Path) -> None:
    log = partition / LOG
    set_field(log, positions(log)[0], MAX_TIMESTAMP, "q", 5)
    assert codes(partition) == ["batch-max-timestamp"]


def test_records_out_of_order_are_found(partition: Path) -> None:
    log = partition / LOG
    old = log.read_bytes()
    first = DefaultBatch(memoryview(old), 0, struct.unpack_from(">i", old, 8)[0] + 12, 0)
    records = first.records()
    assert len(records) > 2
    body = encode_records([records[1], records[0], *records[2:]], records[0].offset, 0)
    batch = frame_batch(
        body,
        count=len(records),
        base_offset=first.base_offset,
        last_offset=first.last_offset,
        base_timestamp=0,
        max_timestamp=first.max_timestamp,
        partition_leader_epoch=first.partition_leader_epoch,
    )
    log.write_bytes(batch + old[first.size :])
    assert codes(partition) == ["record-order"]


def test_a_falling_leader_epoch_is_found(partition: Path) -> None:
    (partition / "leader-epoch-checkpoint").unlink()
    log = partition / LOG
    places = positions(log)
    patch(log, places[0] + EPOCH, struct.pack(">i", 9))
    assert set(codes(partition)) == {"batch-epoch"}


def test_an_epoch_that_the_checkpoint_does_not_know_is_found(partition: Path) -> None:
    log = newest(partition)
    patch(log, positions(log)[-1] + EPOCH, struct.pack(">i", 9))
    # A running broker may have begun it since the checkpoint was read.
    assert codes(partition) == []
    assert any("leader epoch 9" in note.problem for note in notes(partition))
    assert codes(cleanly_stopped(partition)) == ["leader-epochs"]


def test_attributes_that_kafka_never_sets_are_found(partition: Path) -> None:
    log = partition / LOG
    set_field(log, positions(log)[0], ATTRIBUTES, "h", 0x80)
    assert "batch-attributes" in codes(partition)


def test_an_unknown_codec_is_found(partition: Path) -> None:
    log = partition / LOG
    set_field(log, positions(log)[0], ATTRIBUTES, "h", 0x06)
    assert "batch-codec" in codes(partition)


def test_an_unknown_codec_is_found_where_there_is_nothing_to_decompress(tmp_path: Path) -> None:
    log = tmp_path / LOG
    log.write_bytes((FIXTURES / "batches" / "data" / "v2-empty-plain.log").read_bytes())
    assert codes(log) == []
    set_field(log, positions(log)[0], ATTRIBUTES, "h", 0x06)
    assert codes(log) == ["batch-attributes"]


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
def test_a_payload_that_does_not_decompress_is_found(tmp_path: Path, codec: str) -> None:
    node = TOPICS if (TOPICS / f"codec-{codec}-0").exists() else SECOND
    partition = copy(node / f"codec-{codec}-0", tmp_path)
    log = partition / LOG
    where = positions(log)[0]
    patch(log, where + 61, b"\x13\x37" * 10)
    from tests.inspect.damage import reseal

    reseal(log, where)
    found = findings(partition)
    assert [f.code for f in found] == ["batch-decompress"]
    assert codec in found[0].problem


def test_damage_in_old_message_sets_is_found(tmp_path: Path) -> None:
    from tests.inspect.damage import FIXTURES

    for name in ("v0-none", "v1-none", "v0-gzip", "v1-lz4"):
        log = tmp_path / f"{name}.log"
        log.write_bytes((FIXTURES / "batches" / "data" / f"{name}.log").read_bytes())
        assert codes(log) == []
        flip(log, log.stat().st_size - 3)
        assert codes(log) == ["batch-crc"], name


def test_leftover_bytes_behind_a_message_of_format_v1_are_found(tmp_path: Path) -> None:
    import zlib

    body = b"\x01\x00" + (5).to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x01a" + b"XX"
    message = zlib.crc32(body).to_bytes(4, "big") + body
    log = tmp_path / LOG
    log.write_bytes((0).to_bytes(8, "big") + len(message).to_bytes(4, "big") + message)
    assert codes(log) == ["record-framing"]


def test_what_is_cut_anywhere_never_crashes(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    log = newest(partition)
    whole = log.read_bytes()
    for size in range(0, len(whole), 41):
        log.write_bytes(whole[:size])
        codes(partition)


def test_random_bytes_never_crash(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    partition.mkdir()
    for name in (LOG, "00000000000000000000.index", "00000000000000000000.timeindex"):
        (partition / name).write_bytes(os.urandom(24_000))
    (partition / "00000000000000000009.snapshot").write_bytes(os.urandom(500))
    (partition / "leader-epoch-checkpoint").write_bytes(os.urandom(500))
    (partition / "partition.metadata").write_bytes(os.urandom(500))
    assert codes(partition)


def test_a_batch_that_announces_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    log = tmp_path / LOG
    bomb = build_batch(
        [Record(0, 0, None, bytes(300_000_000))], codec=Codec.ZSTD, partition_leader_epoch=0
    )
    log.write_bytes(bomb + struct.pack(">qiib", 1, 2**31 - 1, 0, 2) + bytes(100))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "batch-too-large" in codes(log)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400_000  # kB: decompression stops at its limit of 128 MB


def test_changed_records_with_a_right_checksum_are_no_finding(partition: Path) -> None:
    """The helper that damages payloads does not itself leave anything wrong behind."""
    log = partition / LOG
    change_records(log, positions(log)[0], lambda records: records)
    assert codes(partition) == []


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy"])
def test_an_old_wrapper_with_another_offset_than_its_last_message_is_found(
    tmp_path: Path, codec: str
) -> None:
    partition = copy(FIXTURES / f"topics_0_10/data/broker-0/v0-{codec}-0", tmp_path)
    log = partition / LOG
    last = positions(log)[-1]
    patch(log, last, (1 << 40).to_bytes(8, "big"))
    found = findings(log)[0]
    assert (found.code, found.position, found.offset) == ("batch-offset", last, 1 << 40)
    assert "the last message inside has" in found.problem

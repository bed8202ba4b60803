"""Records that Kafka itself reads: typed to the last byte, with type and version in the words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.records import Record, batches
from kraftline.schema.control.frame import ControlType, encode_control_key
from tests.inspect.damage import (
    LOG,
    METADATA,
    SECOND,
    TOPICS,
    change_records,
    change_value,
    check,
    codes,
    copy,
    data_batches,
    drop_indexes,
    findings,
    positions,
)


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    found = copy(METADATA / "__cluster_metadata-0", tmp_path)
    drop_indexes(found)
    return found


def of_type(log: Path, kind: int) -> int:
    """The position of a batch whose first record is of this metadata type."""
    for batch in batches(log.read_bytes()):
        value = None if batch.is_control else batch.records()[0].value
        if value is not None and value[1] == kind:
            return batch.position
    raise AssertionError(f"no record of type {kind}")


TOPIC, FEATURE = 2, 12


def test_bytes_left_over_behind_a_record_are_found_with_type_and_version(metadata: Path) -> None:
    log = metadata / LOG
    where = of_type(log, TOPIC)
    change_value(log, where, lambda value: value + b"\x00\x01\x02")
    (found,) = findings(metadata)
    assert found.code == "record-leftover"
    assert "TOPIC_RECORD v0" in found.problem
    assert "3 bytes left over" in found.problem
    assert (found.position, found.record) == (where, 0)
    assert found.start[:2] == b"\x01\x02"


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda v: b"\x01\x63" + v[2:], "record-type", "type 99"),
        (lambda v: v[:2] + b"\x09" + v[3:], "record-type", "version 9"),
        (lambda v: b"\x00" + v[1:], "record-type", "frame"),
        (lambda v: v[:-5], "record-value", "TOPIC_RECORD"),
        (lambda v: v[:4] + b"\xff\xfe" + v[6:], "record-value", "UTF-8"),
        (lambda v: v[:3] + b"\x00" + v[4:], "record-value", "TOPIC_RECORD"),
        (lambda v: None, "record-value", "null"),
        (lambda v: b"", "record-value", "empty"),
    ],
    ids=["type", "version", "frame", "cut", "utf-8", "null-name", "null", "empty"],
)
def test_a_metadata_record_that_cannot_be_read_is_found(
    metadata: Path, change: Callable[[bytes], bytes | None], code: str, words: str
) -> None:
    log = metadata / LOG
    change_value(log, of_type(log, TOPIC), change)
    (found,) = findings(metadata)
    assert found.code == code
    assert words in found.problem
    assert found.meaning


def test_a_metadata_record_with_a_key_or_headers_is_found(metadata: Path) -> None:
    log = metadata / LOG
    where = of_type(log, TOPIC)

    def with_key(records: list[Record]) -> list[Record]:
        first = records[0]
        return [Record(first.offset, first.timestamp, b"k", first.value), *records[1:]]

    def with_header(records: list[Record]) -> list[Record]:
        first = records[0]
        return [
            Record(first.offset, first.timestamp, None, first.value, (("h", b"x"),)),
            *records[1:],
        ]

    change_records(log, where, with_key)
    assert codes(metadata) == ["record-key"]
    change_records(log, where, with_header)
    assert codes(metadata) == ["record-value"]


def test_a_metadata_batch_with_times_of_its_own_is_found(metadata: Path) -> None:
    """Kafka refuses to start on one."""
    log = metadata / LOG
    where = next(b.position for b in batches(log.read_bytes()) if (b.count or 0) > 1)

    def later(records: list[Record]) -> list[Record]:
        last = records[-1]
        return [*records[:-1], Record(last.offset, last.timestamp + 5, last.key, last.value)]

    change_records(log, where, later)
    (found,) = findings(metadata)
    assert found.code == "batch-timestamp-delta"
    assert "+5 ms" in found.problem


def test_a_missing_stretch_of_the_metadata_log_is_found(metadata: Path) -> None:
    log = metadata / LOG
    data, places = log.read_bytes(), positions(log)
    log.write_bytes(data[: places[5]] + data[places[6] :])
    (found,) = findings(metadata)
    assert found.code == "batch-offset"
    assert "missing" in found.problem


def test_first_stops_at_the_first_record_that_cannot_be_read(metadata: Path) -> None:
    log = metadata / LOG
    later = data_batches(log)[-1]
    change_value(log, later, lambda value: value + b"\x00")
    where = of_type(log, TOPIC)
    change_value(log, where, lambda value: value + b"\x00")
    found, summary = check(metadata, first=True)
    assert [(f.code, f.position) for f in found] == [("record-leftover", where)]
    assert summary.findings == 1


def test_first_is_silent_about_what_does_not_stop_a_reader(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    (partition / "00000000000000000003.index").write_bytes(b"\x00" * 7)
    (partition / "00000000000000000003.txnindex").unlink()
    assert codes(partition)
    assert check(partition, first=True)[0] == []


@pytest.mark.parametrize(
    ("node", "topic"),
    [
        (TOPICS, "__consumer_offsets-0"),
        (SECOND, "__transaction_state-0"),
        (SECOND, "__share_group_state-0"),
    ],
)
def test_records_of_coordinators_are_read_to_the_last_byte(
    tmp_path: Path, node: Path, topic: str
) -> None:
    partition = copy(node / topic, tmp_path)
    drop_indexes(partition)
    log = min(partition.glob("*.log"), key=lambda p: (p.stat().st_size == 0, p))
    where = next(
        b.position
        for b in batches(log.read_bytes())
        if not b.is_control and b.records() and b.records()[0].value is not None
    )
    whole = log.read_bytes()
    change_value(log, where, lambda value: value + b"\x00\x00")
    assert codes(partition) == ["record-leftover"]
    log.write_bytes(whole)
    change_value(log, where, lambda value: b"\x00\x63" + value[2:])
    (found,) = findings(partition)
    assert found.code == "record-type"
    assert "v99" in found.problem

    def other_key(records: list[Record]) -> list[Record]:
        first = records[0]
        assert first.key is not None
        return [
            Record(first.offset, first.timestamp, b"\x00\x63" + first.key[2:], first.value),
            *records[1:],
        ]

    log.write_bytes(whole)
    change_records(log, where, other_key)
    (found,) = findings(partition)
    assert found.code == "record-type"
    assert "type 99" in found.problem


def test_a_marker_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    log = partition / "00000000000000000003.log"
    where = next(b.position for b in batches(log.read_bytes()) if b.is_control)
    change_value(log, where, lambda value: value[:3])
    assert "control-record" in codes(partition)


def test_a_control_record_of_an_unknown_type_is_only_a_note(tmp_path: Path) -> None:
    partition = copy(TOPICS / "transactions-0", tmp_path)
    drop_indexes(partition)
    (partition / "00000000000000000003.txnindex").unlink()
    log = partition / "00000000000000000003.log"
    where = next(b.position for b in batches(log.read_bytes()) if b.is_control)

    def unknown(records: list[Record]) -> list[Record]:
        key = encode_control_key(ControlType.COMMIT)[:2] + b"\x00\x4d"
        return [Record(records[0].offset, records[0].timestamp, key, records[0].value)]

    change_records(log, where, unknown)
    found, summary = check(partition)
    assert summary.findings == 0
    assert any("type 77" in f.problem for f in found)


def test_a_segment_of_a_copied_metadata_log_is_checked_as_one(metadata: Path) -> None:
    backup = metadata.rename(metadata.with_name("backup"))
    change_value(backup / LOG, of_type(backup / LOG, TOPIC), lambda value: value + b"\0")
    assert codes(backup / LOG) == ["record-leftover"]

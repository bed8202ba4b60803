"""Batches written by Kafka's own builder: read as Kafka reads them, written byte for byte."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from kraftline.records.framing import batches
from kraftline.records.record import Codec, Record
from kraftline.records.write import build_batch, empty_batch
from tests.records.conftest import MANIFEST, kafka_says, record_of, written_by_kafka

NAMES = sorted(MANIFEST)

FIELDS = {
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "position": "position",
    "sizeInBytes": "size_in_bytes",
    "magic": "magic",
    "timestampType": "timestamp_type",
    "maxTimestamp": "max_timestamp",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "crc": "crc",
    "count": "count",
    "deleteHorizonMs": "delete_horizon_ms",
}


@pytest.mark.parametrize("name", NAMES)
def test_kafkas_batches_read_as_kafka_reads_them(name: str, kernel: ModuleType) -> None:
    ours = []
    for batch in batches(written_by_kafka(name)):
        head = {theirs: getattr(batch, field) for theirs, field in FIELDS.items()}
        if batch.magic < 2:
            del head["crc"], head["count"]  # Kafka's tool keeps these to itself for old formats
        head |= {"codec": batch.codec.name.lower()}
        ours += [head | {"record": without_type(record)} for record in batch.records()]
        if batch.count == 0:
            ours.append(head)
    theirs = []
    for line in kafka_says(name):
        assert line["isValid"]
        head = {key: line[key] for key in (*FIELDS, "codec") if key in line}
        theirs.append(head | ({"record": record_of(line)} if "offset" in line else {}))
    assert ours == theirs


def without_type(record: Record) -> Record:
    return Record(*(getattr(record, field) for field in Record.__struct_fields__[:6]))


@pytest.mark.parametrize("name", NAMES)
def test_what_we_write_is_what_kafka_wrote(name: str) -> None:
    spec, theirs = MANIFEST[name], written_by_kafka(name)
    ours = build(spec)
    if spec.get("codec", "none") == "none":
        assert ours == theirs
        return
    # Compressed bytes depend on the library; all else must agree.
    ours_read, theirs_read = list(batches(ours)), list(batches(theirs))
    assert [batch.records() for batch in ours_read] == [batch.records() for batch in theirs_read]
    same = set(FIELDS.values()) - {"crc", "size_in_bytes"}
    for a, b in zip(ours_read, theirs_read, strict=True):
        assert {f: getattr(a, f) for f in same} == {f: getattr(b, f) for f in same}
    if spec["codec"] == "lz4":
        start = 61 if spec["magic"] == 2 else 34 if spec["magic"] else 26
        assert ours[start : start + 7] == theirs[start : start + 7]  # v0: the wrong checksum


def build(spec: dict[str, Any]) -> bytes:
    names = {
        "producerId": "producer_id",
        "producerEpoch": "producer_epoch",
        "baseSequence": "base_sequence",
        "partitionLeaderEpoch": "partition_leader_epoch",
        "isTransactional": "is_transactional",
        "isControl": "is_control",
    }
    options = {ours: spec[theirs] for theirs, ours in names.items() if theirs in spec}
    options["timestamp_type"] = spec["timestampType"]
    if spec.get("op") == "empty":
        return empty_batch(spec["baseOffset"], spec["lastOffset"], spec["maxTimestamp"], **options)
    names = {"logAppendTime": "log_append_time", "deleteHorizonMs": "delete_horizon_ms"}
    names |= {"lastOffset": "last_offset", "baseOffset": "base_offset", "magic": "magic"}
    options |= {ours: spec[theirs] for theirs, ours in names.items() if theirs in spec}
    records = [record_of(record) for record in spec["records"]]
    return build_batch(records, codec=Codec[spec["codec"].upper()], **options)

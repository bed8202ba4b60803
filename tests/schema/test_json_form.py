"""Kafka's JSON form is read strictly: what does not fit is refused, with the place."""

from __future__ import annotations

from typing import Any

import pytest

from kraftline.errors import Corrupt, NotRepresentable, Unsupported
from kraftline.schema.jsonform import from_json, to_json
from kraftline.schema.metadata import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UserScramCredentialRecord,
)
from kraftline.schema.metadata.frame import record_from_json
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint
from kraftline.schema.types import Uuid

BROKER = to_json(RegisterBrokerRecord(end_points=(BrokerEndpoint("PLAIN", "h", 9092, 0),)), 0)


def test_a_record_reads_as_people_know_it() -> None:
    record = PartitionRecord(
        1,
        Uuid.parse("LRzin-vNQ0irrEmpMFoSmw"),
        replicas=(1, 2),
        isr=(1,),
        leader=1,
        leader_recovery_state=1,
        leader_epoch=4,
        partition_epoch=9,
    )
    assert to_json(record, 0) == {
        "partitionId": 1,
        "topicId": "LRzin-vNQ0irrEmpMFoSmw",
        "replicas": [1, 2],
        "isr": [1],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderRecoveryState": 1,
        "leaderEpoch": 4,
        "partitionEpoch": 9,
    }


def test_bytes_are_base64_and_unset_tags_are_left_out() -> None:
    scram = UserScramCredentialRecord("alice", 1, b"\xff\xfe", b"", b"\0", 4096)
    assert to_json(scram, 0)["salt"] == "//4="
    assert to_json(BeginTransactionRecord(), 0) == {}
    assert from_json(BeginTransactionRecord, {}, 0) == BeginTransactionRecord()


def test_a_value_with_no_place_in_the_version_is_refused() -> None:
    with pytest.raises(NotRepresentable, match="version 0 has no directories"):
        to_json(PartitionRecord(directories=(Uuid(bytes(16)),)), 0)
    with pytest.raises(Unsupported, match="versions 0-2 are known"):
        to_json(PartitionRecord(), 3)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"brokerId": "1"}, r"RegisterBrokerRecord.brokerId: int32 is wanted, not '1'"),
        ({"brokerId": True}, r"brokerId: int32 is wanted, not True"),
        ({"brokerId": 1 << 31}, r"brokerId: int32 is wanted"),
        ({"fenced": 1}, r"fenced: true or false is wanted, not 1"),
        ({"incarnationId": "x"}, r"incarnationId: a uuid is wanted, not 'x'"),
        ({"features": None}, r"features: null is not allowed"),
        ({"features": {}}, r"features: an array is wanted"),
        ({"endPoints": [{}]}, r"endPoints\[0\]: name is missing"),
        ({"endPoints": [7]}, r"endPoints\[0\]: an object is wanted, not 7"),
        ({"logDirs": []}, r"version 0 does not know logDirs"),
        ({"rack": 3}, r"rack: a string is wanted, not 3"),
    ],
)
def test_what_does_not_fit_is_named_with_its_path(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Corrupt, match=complaint):
        from_json(RegisterBrokerRecord, BROKER | change, 0)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(Corrupt, match="featureLevel is missing"):
        from_json(FeatureLevelRecord, {"name": "metadata.version"}, 0)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({}, "type, version and data"),
        ({"type": "NO_SUCH_RECORD", "version": 0, "data": {}}, "NO_SUCH_RECORD is not known"),
        ({"type": "NO_OP_RECORD", "version": "0", "data": {}}, "a version is a number"),
        ({"type": "NO_OP_RECORD", "version": 7, "data": {}}, "versions 0 are known"),
    ],
)
def test_a_line_that_is_no_record_is_refused(line: dict[str, Any], complaint: str) -> None:
    with pytest.raises((Corrupt, Unsupported), match=complaint):
        record_from_json(line)

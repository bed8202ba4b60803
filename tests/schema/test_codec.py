"""Kafka's rules for what a version can say, and how tagged fields are laid out."""

from __future__ import annotations

import traceback

import pytest

from kraftline.errors import Corrupt, NotRepresentable, Truncated, Unsupported
from kraftline.schema.api import (
    DescribeTopicPartitionsRequest,
    FetchRequest,
    MetadataRequest,
    RequestHeader,
    VoteRequest,
)
from kraftline.schema.codec import decode, encode, fields, reader, smallest, source_of
from kraftline.schema.coordinator.group import ConsumerGroupMemberMetadataValue
from kraftline.schema.coordinator.group.consumer_group_member_metadata import ClassicMemberMetadata
from kraftline.schema.metadata import (
    BeginTransactionRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from kraftline.schema.metadata.frame import decode_record, encode_record
from kraftline.schema.types import RawTag, Uuid, Versions
from tests.schema.messages import versioned

ID = Uuid(bytes(range(16)))


def test_a_value_with_no_place_in_the_version_is_refused() -> None:
    with pytest.raises(NotRepresentable, match="version 0 has no directories"):
        encode(PartitionRecord(directories=(ID,)), 0)


def test_an_ignorable_value_is_dropped_where_there_is_no_place() -> None:
    assert encode(VoteRequest(voter_id=5), 0) == encode(VoteRequest(), 0)
    assert encode(VoteRequest(voter_id=5), 1) != encode(VoteRequest(), 1)


def test_null_is_refused_where_it_is_not_allowed() -> None:
    everything = MetadataRequest(topics=None)
    assert encode(everything, 1)[:4] == b"\xff\xff\xff\xff"
    with pytest.raises(NotRepresentable, match="topics cannot be null"):
        encode(everything, 0)
    with pytest.raises(Corrupt, match="an array of -1 elements"):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)


@pytest.mark.parametrize(
    "message",
    [
        TopicRecord(name=5),  # type: ignore[arg-type]  # the point of the test
        TopicRecord(name="x" * 32768),
        TopicRecord(name="\ud800"),
        TopicRecord(topic_id=b"short"),  # type: ignore[arg-type]  # the point of the test
        PartitionRecord(leader=1 << 31),
        PartitionRecord(leader="1"),  # type: ignore[arg-type]  # the point of the test
        PartitionRecord(replicas=(1, None)),  # type: ignore[arg-type]  # the point of the test
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(message: TopicRecord | PartitionRecord) -> None:
    with pytest.raises(NotRepresentable, match=f"{type(message).__name__} version 0"):
        encode(message, 0)


def test_an_unknown_version_names_those_that_are_known() -> None:
    with pytest.raises(Unsupported, match="PartitionRecord version 9: versions 0-2 are known"):
        reader(PartitionRecord, 9)


def test_tagged_fields_are_written_in_order_of_tag_and_only_if_set() -> None:
    change = PartitionChangeRecord(3, ID, isr=(1,), leader=7)
    assert encode(change, 0) == b"\0\0\0\x03" + ID + (
        b"\x02"  # two tags
        b"\x00\x05\x02\0\0\0\x01"  # isr
        b"\x01\x04\0\0\0\x07"  # leader
    )
    assert encode(PartitionChangeRecord(3, ID), 0) == b"\0\0\0\x03" + ID + b"\0"


def test_unknown_tags_are_kept_and_written_back_among_the_known() -> None:
    data = b"\0\0\0\x03" + ID + b"\x03\x01\x04\0\0\0\x07\x06\x01x\x63\x00"
    change = decode(PartitionChangeRecord, data, 0)
    assert change.leader == 7
    assert change.unknown_tags == (RawTag(6, b"x"), RawTag(99, b""))
    assert encode(change, 0) == data
    # A later version knows tag 6, so it cannot be an unknown one there.
    with pytest.raises(NotRepresentable, match="unknown tag 6"):
        encode(change, 2)


def test_unknown_tags_out_of_order_are_read_but_not_written() -> None:
    message = decode(NoOpRecord, b"\x02\x05\x00\x04\x00", 0)
    assert [tag.tag for tag in message.unknown_tags] == [5, 4]
    with pytest.raises(NotRepresentable, match="out of order"):
        encode(message, 0)


def test_of_a_tag_that_comes_twice_the_last_counts() -> None:
    message = decode(BeginTransactionRecord, b"\x02\x00\x02\x02a\x00\x02\x02b", 0)
    assert message == BeginTransactionRecord("b")


def test_a_tag_whose_size_lies_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="tagged field"):
        decode(BeginTransactionRecord, b"\x01\x00\x03\x02a\x00", 0)


def test_unknown_tags_do_not_fit_into_a_version_without_tags() -> None:
    with pytest.raises(NotRepresentable, match="unknown_tags"):
        encode(FetchRequest(unknown_tags=(RawTag(9, b""),)), 4)


def test_bytes_left_over_are_corrupt() -> None:
    with pytest.raises(Corrupt, match="1 byte left over"):
        decode(NoOpRecord, b"\0\0", 0)


def test_a_struct_can_be_null() -> None:
    nothing = DescribeTopicPartitionsRequest(response_partition_limit=1)
    assert encode(nothing, 0) == b"\x01\0\0\0\x01\xff\0"
    assert decode(DescribeTopicPartitionsRequest, b"\x01\0\0\0\x01\xff\0", 0) == nothing


def test_a_tagged_struct_can_be_null() -> None:
    """The bytes are those that Kafka's own class wrote for null and for a session timeout of 5."""
    head = b"\x01\x01\x01\x01\x01\x01\xff\xff\xff\xff\x01"
    for value, tail in (
        (None, b"\x01\x00\x01\x00"),
        (ClassicMemberMetadata(5), b"\x01\x00\x07\x01\0\0\0\x05\x01\x00"),
        (ClassicMemberMetadata(), b"\x00"),
    ):
        message = ConsumerGroupMemberMetadataValue(classic_member_metadata=value)
        assert encode(message, 0) == head + tail
        assert decode(ConsumerGroupMemberMetadataValue, head + tail, 0) == message


def test_the_client_id_of_a_header_is_never_compact() -> None:
    header = RequestHeader(18, 3, 7, "me")
    assert encode(header, 2) == b"\0\x12\0\x03\0\0\0\x07\0\x02me\0"


def test_a_string_that_is_not_utf8_is_corrupt() -> None:
    with pytest.raises(Corrupt, match=r"position 1: a string is not UTF-8"):
        decode(TopicRecord, b"\x03\xff\xfe" + ID + b"\0", 0)


def test_a_frame_of_another_version_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="frame other than version 1"):
        decode_record(b"\x00\x02\x00")
    with pytest.raises(Unsupported, match="type 13 is not known"):
        decode_record(b"\x01\x0d\x00")
    with pytest.raises(Unsupported, match="TopicRecord version 5"):
        decode_record(b"\x01\x02\x05")
    with pytest.raises(Truncated):
        decode_record(b"\x01\x02")
    with pytest.raises(NotRepresentable, match="not a metadata record"):
        encode_record(FetchRequest(), 4)


def test_every_array_element_takes_at_least_a_byte() -> None:
    """Else a count could not be held against the bytes that are left."""
    for cls, version in versioned():
        for field in fields(cls):
            if field.is_array and field.struct and version in field.versions:
                assert smallest(field.struct, version) > 0


def test_a_traceback_shows_the_compiled_line() -> None:
    with pytest.raises(Truncated) as caught:
        decode(TopicRecord, b"\x02", 0)
    shown = "".join(traceback.format_exception(caught.value))
    assert "name, topic_id, _tags, = r.fields(" in shown
    assert "def read_TopicRecord_v0(r):" in source_of(reader(TopicRecord, 0))


def test_fields_say_what_was_declared() -> None:
    elr = {field.name: field for field in fields(PartitionRecord)}["eligible_leader_replicas"]
    assert (elr.json_name, elr.wire, elr.is_array) == ("eligibleLeaderReplicas", "int32", True)
    assert (elr.tag, elr.default, elr.versions) == (1, None, Versions(2, 2))
    assert elr.tag_in(1) is None
    assert 2 in elr.nullable

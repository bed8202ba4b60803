"""Metadata, DescribeCluster and ApiVersions in every version, over a cluster in odd states."""

from __future__ import annotations

import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.broker.registry import MODULES
from kraftline.schema.api.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraftline.schema.api.describe_cluster import DescribeClusterRequest
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.types import ZERO, Message
from kraftline.schema.uuids import Uuid
from kraftline.server.connection import CloseConnection
from tests.oracle.answers import BrokerAnswers, Closed
from tests.recorder import odd_cluster
from tests.recorder.compare import differences
from tests.recorder.frames import answered, frame, header
from tests.recorder.over_image import OurAnswers

pytestmark = pytest.mark.oracle

METADATA, API_VERSIONS, DESCRIBE_CLUSTER = 3, 18, 60
LISTENERS = ["PLAINTEXT", "OTHER", "NOWHERE"]
KNOWN = {r.name: r.topic_id for r, _ in odd_cluster.records() if isinstance(r, TopicRecord)}
NAMES = [*KNOWN, "gone", "away", "a/b", ".", "x" * 250, "é"]


@pytest.fixture(scope="module")
def ours() -> OurAnswers:
    answers = OurAnswers()
    answers.load(odd_cluster.records())
    return answers


@pytest.fixture
def kafkas(kafka_answers: BrokerAnswers) -> BrokerAnswers:
    kafka_answers.load(odd_cluster.records())
    return kafka_answers


def _said(answer: bytes | None, key: int, version: int) -> Message:
    assert answer is not None
    return answered(answer, key, version)


def _topics(*names: str | None, ids: tuple[Uuid, ...] = ()) -> tuple[MetadataRequestTopic, ...]:
    named = tuple(MetadataRequestTopic(name=name) for name in names)
    return named + tuple(MetadataRequestTopic(name=None, topic_id=each) for each in ids)


NONE: tuple[MetadataRequestTopic, ...] = ()
EVERY_VERSION = {
    "none": NONE,
    "all by name": _topics(*KNOWN),
    "unknown": _topics("one", "gone"),
    "invalid": _topics("one", "a/b", ".", "x" * 250),
    "not ASCII": _topics("é", "one"),
    "twice": _topics("one", "leaders", "one", "gone", "gone"),
    "no name": _topics("", "one"),
    "without partitions": _topics("empty", "one"),
}
ONE = KNOWN["one"]
FROM_10 = {
    "by id": _topics(ids=(KNOWN["one"], KNOWN["leaders"])),
    "by unknown id": _topics(ids=(odd_cluster.uuid(999), ONE, odd_cluster.uuid(998))),
    "by id twice": _topics(ids=(ONE, ONE)),
    "by id and name": _topics("leaders", ids=(ONE,)),
    "by id of another name": (MetadataRequestTopic(name="leaders", topic_id=ONE),),
    "neither": _topics(None),
    "neither, among others": _topics("one", None),
    "neither id, among others": _topics("one", ids=(ZERO, ONE)),
    "an id without partitions": _topics(ids=(KNOWN["empty"], ONE)),
}


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("listener", LISTENERS)
def test_metadata_says_what_kafka_says(
    kafkas: BrokerAnswers, ours: OurAnswers, version: int, listener: str
) -> None:
    wanted: dict[str, tuple[MetadataRequestTopic, ...] | None] = dict(EVERY_VERSION)
    if version >= 1:
        wanted["all"] = None
    if version >= 10:
        wanted |= FROM_10
    for name, topics in wanted.items():
        for operations in (False, True) if version >= 8 else (False,):
            request = MetadataRequest(
                topics=topics,
                include_topic_authorized_operations=operations,
                include_cluster_authorized_operations=operations and version <= 10,
            )
            asked = frame(request, METADATA, version)
            one = _said(ours.answer(asked, listener), METADATA, version)
            other = _said(kafkas.answer(asked, listener), METADATA, version)
            assert not differences(one, other), name


def test_the_controller_is_any_broker_that_is_not_fenced(ours: OurAnswers) -> None:
    asked = frame(MetadataRequest(topics=None), METADATA, 12)
    told = set()
    for _ in range(200):
        said = _said(ours.answer(asked), METADATA, 12)
        assert isinstance(said, MetadataResponse)
        told.add(said.controller_id)
    # 4 lacks the listener and is told all the same, as Kafka does.
    assert told == {1, 2, 4, 5, 6, 7}


@given(
    version=st.integers(0, 13),
    names=st.lists(st.sampled_from(NAMES), max_size=6),
    listener=st.sampled_from(LISTENERS),
)
def test_metadata_says_what_kafka_says_for_any_names(
    kafkas: BrokerAnswers, ours: OurAnswers, version: int, names: list[str], listener: str
) -> None:
    asked = frame(MetadataRequest(topics=_topics(*names)), METADATA, version)
    one = _said(ours.answer(asked, listener), METADATA, version)
    assert not differences(one, _said(kafkas.answer(asked, listener), METADATA, version))


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("operations", [False, True])
def test_describe_cluster_says_what_kafka_says(
    kafkas: BrokerAnswers, ours: OurAnswers, version: int, listener: str, operations: bool
) -> None:
    for endpoint_type in (1, 2, 0, 3, -1, 127) if version >= 1 else (1,):
        for fenced in (False, True) if version >= 2 else (False,):
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=operations,
                endpoint_type=endpoint_type,
                include_fenced_brokers=fenced,
            )
            asked = frame(request, DESCRIBE_CLUSTER, version)
            one = _said(ours.answer(asked, listener), DESCRIBE_CLUSTER, version)
            other = _said(kafkas.answer(asked, listener), DESCRIBE_CLUSTER, version)
            if listener == "PLAINTEXT":  # a random broker that may lack it is told as -1
                one, other = _without_controller(one), _without_controller(other)
            assert not differences(one, other)


def _without_controller(said: Message) -> Message:
    fields = {name: getattr(said, name) for name in said.__struct_fields__}
    return type(said)(**fields | {"controller_id": 0})


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(
    ("name", "software"),
    [
        ("a", "1"),
        ("apache-kafka-java", "4.3.1"),
        ("", "1"),
        ("a", ""),
        ("a b", "1"),
        ("-a", "1"),
        ("a-", "1"),
        ("a", "1.0.0-rc.1"),
        ("a", "1.0."),
        ("é", "1"),
        ("a\n", "1"),
    ],
)
def test_api_versions_says_what_kafka_says_of_what_we_answer(
    kafkas: BrokerAnswers, ours: OurAnswers, version: int, name: str, software: str
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    asked = frame(request, API_VERSIONS, version)
    one = _said(ours.answer(asked), API_VERSIONS, version)
    other = _said(kafkas.answer(asked), API_VERSIONS, version)
    assert isinstance(one, ApiVersionsResponse)
    assert isinstance(other, ApiVersionsResponse)
    fields = {name: getattr(other, name) for name in other.__struct_fields__}
    fields["api_keys"] = tuple(each for each in other.api_keys if each.api_key in MODULES)
    assert not differences(one, ApiVersionsResponse(**fields))


@pytest.mark.parametrize("version", [5, 6, 127, 32767, -1, -32768])
@pytest.mark.parametrize("rest", [b"", b"\0", b"\0\2a\0021\0", b"garbage", b"\1\0\1x"])
def test_api_versions_of_unknown_versions_falls_back(
    kafkas: BrokerAnswers, ours: OurAnswers, version: int, rest: bytes
) -> None:
    _compare_frames(kafkas, ours, header(API_VERSIONS, version) + rest)


_VALID = frame(MetadataRequest(topics=None), METADATA, 12)
FRAMES = {
    "nothing": b"",
    "one byte": b"\0",
    "only a key": b"\0\3",
    "no client id": struct.pack(">hhi", METADATA, 0, 7),
    "half a client id's length": struct.pack(">hhi", METADATA, 0, 7) + b"\0",
    "an unknown key": header(1234, 0) + bytes(4),
    "a negative key": header(-1, 0) + bytes(4),
    "a removed key": header(4, 0) + bytes(4),
    "a key of controllers": header(52, 1, flexible=True) + bytes(4),
    "an old version": header(0, 2) + bytes(40),
    "a version too new": header(METADATA, 14, flexible=True) + bytes(4),
    "a negative version": header(METADATA, -1) + bytes(4),
    "bytes left over": _VALID + b"left over",
    "a byte missing": _VALID[:-1],
    "all bytes missing": header(METADATA, 12, flexible=True),
    "no tags": header(METADATA, 12),
    "a null client id": frame(MetadataRequest(topics=None), METADATA, 12, None),
    "an empty client id": frame(MetadataRequest(topics=None), METADATA, 12, ""),
    "a client id that is not UTF-8": header(METADATA, 1, b"M\xfcller") + b"\xff\xff\xff\xff",
    "a client id of length -2": struct.pack(">hhih", METADATA, 1, 7, -2) + b"\xff\xff\xff\xff",
    "a client id that is longer than all": struct.pack(">hhih", METADATA, 1, 7, 999) + b"abc",
    "a list longer than all": header(METADATA, 1) + struct.pack(">i", 2**31 - 1),
    "no list in version 0": header(METADATA, 0) + b"\xff\xff\xff\xff",
    "a name longer than all": header(METADATA, 1) + struct.pack(">ih", 1, 99) + b"x",
    "a null name": header(METADATA, 1) + struct.pack(">ih", 1, -1),
    "tags in the header": struct.pack(">hhih", METADATA, 12, 0x01020304, 1)
    + b"c\2\0\1x\5\2yz"
    + b"\0\1\0\0",
    "tags behind the request": header(METADATA, 12, flexible=True) + b"\0\1\0\2\7\1x\1\0",
    "more tags than there are": header(METADATA, 12, flexible=True) + b"\0\1\0\2\7\1x",
}


@pytest.mark.parametrize("name", FRAMES)
def test_odd_frames_end_as_with_kafka(kafkas: BrokerAnswers, ours: OurAnswers, name: str) -> None:
    _compare_frames(kafkas, ours, FRAMES[name])


@given(
    data=st.binary(max_size=60), key=st.sampled_from([3, 18, 60, 75]), version=st.integers(0, 13)
)
def test_garbage_behind_a_header_ends_as_with_kafka(
    kafkas: BrokerAnswers, ours: OurAnswers, data: bytes, key: int, version: int
) -> None:
    _compare_frames(kafkas, ours, struct.pack(">hhi", key, version, 0x01020304) + data)


def _compare_frames(kafkas: BrokerAnswers, ours: OurAnswers, asked: bytes) -> None:
    """Both close the connection, or both answer, with as many bytes and the same code behind the
    correlation id; what is said is compared elsewhere."""
    try:
        other = kafkas.answer(asked)
    except Closed:
        with pytest.raises(CloseConnection):
            ours.answer(asked)
        return
    try:
        one = ours.answer(asked)
    except CloseConnection as reason:
        # Kafka takes any negative length for null, and mends text that is not UTF-8.
        if re.search(r" -\d+ elements|of length -\d+|not UTF-8", str(reason)):
            return
        raise
    assert one is not None
    assert other is not None
    key = struct.unpack(">h", asked[:2])[0]
    assert one[:6] == other[:6]
    if key != API_VERSIONS:
        assert len(one) == len(other)

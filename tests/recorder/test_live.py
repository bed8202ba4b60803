"""The same requests to a running Kafka and to a running node of ours."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic
from tests.node.running import OurNode, RealKafka
from tests.recorder import node_cases
from tests.recorder.cases import Case
from tests.recorder.compare import FREE, differences
from tests.recorder.frames import frame, header
from tests.recorder.live import Live, outcome

pytestmark = pytest.mark.oracle

SETTINGS = {"auto.create.topics.enable": "true", "num.partitions": "2"}
METADATA, API_VERSIONS = 3, 18
CASES = node_cases.CASES


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with (
        RealKafka(tmp_path_factory.mktemp("kafka"), SETTINGS) as kafka,
        Live(kafka.bootstrap) as live,
    ):
        live.create_topics(**node_cases.TOPICS)
        yield live


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with OurNode(tmp_path_factory.mktemp("ours"), SETTINGS) as node, Live(node.bootstrap) as live:
        live.create_topics(**node_cases.TOPICS)
        yield live


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kafka_says_the_same(kafkas: Live, ours: Live, case: Case) -> None:
    for version in case.versions:
        one = ours.ask(case.request(ours, version), case.key, version)
        other = kafkas.ask(case.request(kafkas, version), case.key, version)
        assert not differences(one, other, {**FREE, **case.normal}), f"version {version}"


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_made_when_it_is_asked_for(kafkas: Live, ours: Live, version: int) -> None:
    name = f"made-{version}"
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
    for _ in ("not there yet", "there"):
        one, other = (each.ask(request, METADATA, version) for each in (ours, kafkas))
        assert not differences(one, other, FREE)
        for each in (ours, kafkas):
            each.wait_for_topic(name, 2)


def _sized(*frames: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in frames)


_METADATA = frame(MetadataRequest(topics=()), METADATA, 12)
_UNKNOWN = header(999, 0) + bytes(4)
PIECES: dict[str, tuple[bytes, ...]] = {
    "nothing at all": (b"",),
    "three at once": (_sized(_METADATA, _METADATA, _METADATA),),
    "one in many pieces": tuple(bytes([each]) for each in _sized(_METADATA)),
    "half a length": (b"\0\0",),
    "half a request": (_sized(_METADATA)[:-3],),
    "an empty frame": (_sized(b""),),
    "an empty frame, then a request": (_sized(b"", _METADATA),),
    "a frame of one byte": (_sized(b"\0"),),
    "a negative length": (struct.pack(">i", -1) + _METADATA,),
    "two gigabytes": (struct.pack(">i", 2**31 - 1) + _METADATA,),
    "one byte more than is allowed": (struct.pack(">i", 104_857_601) + _METADATA,),
    "as much as is allowed, half of it": (struct.pack(">i", 104_857_600) + _METADATA,),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8\r\n\r\n",),
    "HTTPS": (bytes.fromhex("1603010200010001fc0303") + bytes(500),),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n",),
    "zeros": (bytes(64),),
    "an unknown API": (_sized(_UNKNOWN),),
    "an unknown API after a request": (_sized(_METADATA, _UNKNOWN),),
    "a request after an unknown API": (_sized(_UNKNOWN, _METADATA),),
    "a version too new": (_sized(header(METADATA, 99, flexible=True) + bytes(8)),),
    "a version too old": (_sized(header(0, 2) + bytes(20)),),
    "a request that does not decode": (_sized(_METADATA[:-2], _METADATA),),
    "bytes left over in a frame": (_sized(_METADATA + b"left over", _METADATA),),
    "ApiVersions from the future": (_sized(header(API_VERSIONS, 99, flexible=True), _METADATA),),
    "ApiVersions twice": (_sized(header(API_VERSIONS, 0), header(API_VERSIONS, 0)),),
    "an API of controllers": (_sized(header(52, 0, flexible=True) + bytes(8)),),
}


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("hang_up", [False, True], ids=["stays", "hangs up"])
def test_odd_bytes_end_as_with_kafka(kafkas: Live, ours: Live, name: str, hang_up: bool) -> None:
    pieces = PIECES[name]
    one = outcome(ours, *pieces, hang_up=hang_up)
    assert one == outcome(kafkas, *pieces, hang_up=hang_up)
    # Everyone else goes on.
    assert ours.ask(MetadataRequest(topics=()), METADATA, 12)

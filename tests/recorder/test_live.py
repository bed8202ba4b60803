"""The same requests to a running Kafka and to a running node of our_live."""

from __future__ import annotations

import struct

import pytest

from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic
from tests.recorder import data_cases, node_cases
from tests.recorder.cases import Case
from tests.recorder.compare import FREE, differences
from tests.recorder.frames import frame, header
from tests.recorder.live import Live, outcome

pytestmark = pytest.mark.oracle

METADATA, API_VERSIONS = 3, 18
CASES = node_cases.CASES + data_cases.CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kafka_says_the_same(kafka_live: Live, our_live: Live, case: Case) -> None:
    for version in case.versions:
        one = our_live.ask(case.request(our_live, version), case.key, version)
        other = kafka_live.ask(case.request(kafka_live, version), case.key, version)
        assert not differences(one, other, {**FREE, **case.normal}), f"version {version}"


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_made_when_it_is_asked_for(
    kafka_live: Live, our_live: Live, version: int
) -> None:
    name = f"made-{version}"
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
    for _ in ("not there yet", "there"):
        one, other = (each.ask(request, METADATA, version) for each in (our_live, kafka_live))
        assert not differences(one, other, FREE)
        for each in (our_live, kafka_live):
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
def test_odd_bytes_end_as_with_kafka(
    kafka_live: Live, our_live: Live, name: str, hang_up: bool
) -> None:
    pieces = PIECES[name]
    for patience in (0.5, 5.0):  # a busy machine may take longer
        one = outcome(our_live, *pieces, quiet=patience, hang_up=hang_up)
        other = outcome(kafka_live, *pieces, quiet=patience, hang_up=hang_up)
        if one == other:
            break
    assert one == other
    # Everyone else goes on.
    assert our_live.ask(MetadataRequest(topics=()), METADATA, 12)

"""Whatever comes in on the port: the node and everyone else go on, and memory stays bounded.

Kafka closes the connection in each of these cases too; a real one may stand in (`broker`).
"""

from __future__ import annotations

import resource
import socket
import ssl
import struct
import time
from collections.abc import Iterator

import pytest

from tests.clients.adapters import Confluent, Sent
from tests.effort import SOAK
from tests.node.running import OurNode, RealKafka
from tests.oracle.kafka import HOST

IDLE = 10_000 if SOAK else 300
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)


@pytest.fixture(
    scope="module",
    params=["kraftline", pytest.param("kafka", marks=[pytest.mark.oracle, pytest.mark.soak])],
)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OurNode | RealKafka]:
    kind = OurNode if request.param == "kraftline" else RealKafka
    with kind(tmp_path_factory.mktemp("bad-input")) as node:
        Confluent(node.bootstrap).create_topic("t")
        yield node


@pytest.fixture(autouse=True)
def everyone_else(broker: OurNode | RealKafka) -> Iterator[None]:
    """After each test a client of good manners is served."""
    yield
    client = Confluent(broker.bootstrap)
    (offset,) = client.produce("t", [Sent(None, b"still here")])
    assert client.consume("t", offset, 1)[0].value == b"still here"


def connect(broker: OurNode | RealKafka) -> socket.socket:
    port = int(broker.bootstrap.rpartition(":")[2])
    return socket.create_connection((HOST, port), 20)


def is_closed(channel: socket.socket) -> bool:
    try:
        return channel.recv(100) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", 100) + bytes(range(100, 200)), id="garbage"),
        pytest.param(b"\xff" * 64, id="negative length"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", id="HTTP"),
        pytest.param(struct.pack(">i", 2**31 - 1) + b"x" * 100, id="2 GB"),
        pytest.param(struct.pack(">i", 0), id="empty"),
        pytest.param(struct.pack(">ihhih", 10, 999, 0, 1, -1), id="unknown API"),
        pytest.param(struct.pack(">ihhih", 10, 3, 999, 1, -1), id="unknown version"),
        pytest.param(struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1), id="a lying count"),
        pytest.param(struct.pack(">ihhih", 10, 0, 3, 1, 3000), id="a lying length"),
    ],
)
def test_what_makes_no_sense_closes_the_connection(
    broker: OurNode | RealKafka, data: bytes
) -> None:
    with connect(broker) as channel:
        channel.sendall(data)
        assert is_closed(channel)


def test_tls_on_a_plain_port_is_refused(broker: OurNode | RealKafka) -> None:
    context = ssl.create_default_context()
    with connect(broker) as channel, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(channel, server_hostname="localhost")


def test_half_a_request_waits_for_itself_alone(broker: OurNode | RealKafka) -> None:
    with connect(broker) as half, connect(broker) as whole:
        half.sendall(API_VERSIONS_V0[:7])
        whole.sendall(API_VERSIONS_V0)
        assert len(whole.recv(100)) > 10
        half.sendall(API_VERSIONS_V0[7:])
        assert len(half.recv(100)) > 10


def test_a_length_is_not_believed_before_the_bytes_come(broker: OurNode | RealKafka) -> None:
    if not isinstance(broker, OurNode):
        pytest.skip("Kafka takes the memory at once, up to socket.request.max.bytes each")
    before = broker.resident()
    channels = [connect(broker) for _ in range(50)]
    for channel in channels:
        channel.sendall(struct.pack(">i", 100_000_000) + b"x" * 1000)
    time.sleep(0.5)
    assert broker.resident() - before < 20_000_000
    for channel in channels:
        channel.close()


def test_a_client_that_never_reads_its_answers_waits_for_itself(
    broker: OurNode | RealKafka,
) -> None:
    before = broker.resident() if isinstance(broker, OurNode) else 0
    with connect(broker) as channel:
        channel.settimeout(2)
        with pytest.raises(TimeoutError):
            channel.sendall(API_VERSIONS_V0 * 10_000_000)
        if isinstance(broker, OurNode):
            assert broker.resident() - before < 20_000_000


def test_many_idle_connections_hold_up_nobody(broker: OurNode | RealKafka) -> None:
    if not isinstance(broker, OurNode):
        pytest.skip("what is measured is our memory")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(IDLE, most - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 200, most))
    before = broker.resident()
    channels = [connect(broker) for _ in range(wanted)]
    try:
        for channel in channels[::10]:
            channel.sendall(API_VERSIONS_V0)
            assert channel.recv(10)
        Confluent(broker.bootstrap).topics()
        assert broker.resident() - before < wanted * 20_000 + 5_000_000
    finally:
        for channel in channels:
            channel.close()


@pytest.mark.parametrize("name", ["../x", "..", ".", "a/b", "a b", "", "x" * 250, "a\0b"])
def test_names_that_lead_elsewhere_are_refused(broker: OurNode | RealKafka, name: str) -> None:
    """InvalidTopic (17), and no file anywhere."""
    assert _create(broker, name.encode()) == 17
    if isinstance(broker, OurNode):
        assert not list(broker.root.glob("x*"))
        assert not list(broker.root.parent.glob("x*"))


def _create(broker: OurNode | RealKafka, name: bytes) -> int:
    """CreateTopics version 2, by hand: clients would not send such a name. Its error code."""
    topic = struct.pack(">h", len(name)) + name + struct.pack(">ihii", 1, 1, 0, 0)
    body = struct.pack(">i", 1) + topic + struct.pack(">i?", 5000, False)
    head = struct.pack(">hhih", 19, 2, 1, -1)
    with connect(broker) as channel:
        channel.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack(">i", answer[:4])[0]:
            more = channel.recv(4096)
            assert more, "the connection was closed"
            answer += more
    at = 4 + 4 + 4 + 4 + 2 + len(name)  # size, correlation, throttle, count, name
    return int(struct.unpack_from(">h", answer, at)[0])

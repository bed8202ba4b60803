"""A running broker at the other end of a socket."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import msgspec

from kraftline.schema.api.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraftline.schema.api.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kraftline.schema.api.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kraftline.schema.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.recorder.frames import answered, frame

LIST_OFFSETS, METADATA, CREATE_TOPICS = 2, 3, 19
FIND_COORDINATOR, DESCRIBE_GROUPS, DESCRIBE_TRANSACTIONS = 10, 15, 65
AWAY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Ended(Exception):
    """The connection was closed."""


class Live:
    """`address` is host and port; the connection is opened again after it was closed."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.address = host, int(port)
        self._channel: socket.socket | None = None
        self._ids: dict[str, Uuid] = {}

    def ask(self, request: Message, key: int, version: int) -> Message:
        return answered(self.exchange(frame(request, key, version)), key, version)

    def exchange(self, asked: bytes) -> bytes:
        """The answer to a frame, both without their lengths; Ended instead of one."""
        if self._channel is None:
            self._channel = self.connect()
        try:
            self._channel.sendall(len(asked).to_bytes(4, "big") + asked)
            return receive(self._channel)
        except (Ended, OSError):
            self.close()
            raise

    def connect(self) -> socket.socket:
        channel = socket.create_connection(self.address, timeout=20)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return channel

    def topic_id(self, name: str) -> Uuid:
        found = self._ids.get(name)
        if found is None:
            topics = (MetadataRequestTopic(name=name),)
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
            said = self.ask(request, METADATA, 12)
            assert isinstance(said, MetadataResponse)
            found = self._ids[name] = said.topics[0].topic_id
        return found

    def create_topics(self, **partitions: int) -> None:
        """Make topics, and wait until the broker tells of their leaders."""
        request = CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in partitions.items()
            ),
            timeout_ms=10_000,
        )
        said = self.ask(request, CREATE_TOPICS, 7)
        assert isinstance(said, CreateTopicsResponse)
        assert not any(each.error_code for each in said.topics), said
        for name, count in partitions.items():
            self.wait_for_topic(name, count)

    def wait_for_topic(self, name: str, partitions: int) -> None:
        request = MetadataRequest(
            topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False
        )
        deadline = time.monotonic() + 20
        while True:
            said = self.ask(request, METADATA, 12)
            assert isinstance(said, MetadataResponse)
            found = said.topics[0].partitions
            if len(found) == partitions and not any(each.error_code for each in found):
                break
            assert time.monotonic() < deadline, said
            time.sleep(0.05)
        # Metadata may be ahead of those who lead the partitions.
        ends = ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name=name,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=n, timestamp=-1)
                        for n in range(partitions)
                    ),
                ),
            ),
        )
        while True:
            told = self.ask(ends, LIST_OFFSETS, 7)
            assert isinstance(told, ListOffsetsResponse)
            if not any(each.error_code for topic in told.topics for each in topic.partitions):
                return
            assert time.monotonic() < deadline, told
            time.sleep(0.05)

    def wait_for_coordinators(self, names: Iterable[str]) -> None:
        """Wait until groups and transactions of these names have a coordinator that is loaded."""
        groups, transactions = tuple(names), tuple(name for name in names if name)
        asked: tuple[tuple[int, Message], ...] = (
            (DESCRIBE_GROUPS, DescribeGroupsRequest(groups=groups)),
            (
                DESCRIBE_TRANSACTIONS,
                DescribeTransactionsRequest(transactional_ids=transactions),
            ),
        )
        deadline = time.monotonic() + 60
        for kind, (key, request) in enumerate(asked):
            for name in transactions:
                find = FindCoordinatorRequest(key=name, key_type=kind)
                while True:
                    said = self.ask(find, FIND_COORDINATOR, 3)
                    assert isinstance(said, FindCoordinatorResponse)
                    if not said.error_code:
                        break
                    assert time.monotonic() < deadline, said
                    time.sleep(0.05)
            while _is_away(self.ask(request, key, 0)):
                assert time.monotonic() < deadline, request
                time.sleep(0.05)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _is_away(said: Message) -> bool:
    if isinstance(said, DescribeGroupsResponse):
        return any(each.error_code in AWAY for each in said.groups)
    assert isinstance(said, DescribeTransactionsResponse)
    return any(each.error_code in AWAY for each in said.transaction_states)


class Outcome(msgspec.Struct, frozen=True):
    """What came of bytes on a connection: the correlation ids that were answered, in their order,
    and whether the broker closed it."""

    answers: tuple[int, ...]
    closed: bool


def outcome(live: Live, *pieces: bytes, quiet: float = 0.5, hang_up: bool = False) -> Outcome:
    """Send pieces of bytes on a new connection, a moment apart; the broker has had its say once it
    is quiet for so many seconds. With `hang_up` the sending side is closed after them."""
    answers = []
    with live.connect() as channel:
        try:
            for number, piece in enumerate(pieces):
                if number:
                    time.sleep(0.02)
                channel.sendall(piece)
            if hang_up:
                channel.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it did not want to hear all of it
        channel.settimeout(quiet)
        try:
            while True:
                answers.append(int.from_bytes(receive(channel)[:4], "big", signed=True))
        except Ended:
            return Outcome(tuple(answers), True)
        except TimeoutError:
            return Outcome(tuple(answers), False)


def receive(channel: socket.socket) -> bytes:
    return _exactly(channel, int.from_bytes(_exactly(channel, 4), "big"))


def _exactly(channel: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        try:
            piece = channel.recv(count - len(found))
        except ConnectionError:
            piece = b""
        if not piece:
            raise Ended
        found += piece
    return bytes(found)

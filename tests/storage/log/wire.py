"""Requests to a real broker as they are: no client between that mends what is sent."""

from __future__ import annotations

import socket
import time
from typing import TypeVar

from kraftline.schema.api.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kraftline.schema.api.header import RequestHeader
from kraftline.schema.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraftline.schema.api.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraftline.schema.codec import decode, encode
from kraftline.schema.types import Message

M = TypeVar("M", bound=Message)
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6


class Wire:
    """One connection. All requests are in flexible versions that name topics."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, 30)

    def produce(self, topic: str, data: bytes) -> PartitionProduceResponse:
        """The answer for partition 0; asked again while its leader does not know a new topic."""
        records = PartitionProduceData(index=0, records=data)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=(TopicProduceData(name=topic, partition_data=(records,)),),
        )
        for _ in range(100):
            [answer] = self._ask(request, 0, 11, ProduceResponse).responses
            [partition] = answer.partition_responses
            if partition.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER):
                break
            time.sleep(0.05)
        return partition

    def fetch(
        self, topic: str, partition: int, offset: int, *, most: int = 10_000_000, committed: int = 0
    ) -> PartitionData:
        """What a consumer gets at an offset; `committed` is its isolation level."""
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=most)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            isolation_level=committed,
            topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
        )
        [answer] = self._ask(request, 1, 12, FetchResponse).responses
        [data] = answer.partitions
        return data

    def list_offset(
        self, topic: str, partition: int, timestamp: int
    ) -> ListOffsetsPartitionResponse:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),)
        )
        [answer] = self._ask(request, 2, 7, ListOffsetsResponse).topics
        [found] = answer.partitions
        return found

    def close(self) -> None:
        self._socket.close()

    def _ask(self, request: Message, key: int, version: int, kind: type[M]) -> M:
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=1, client_id="odd"
        )
        frame = encode(header, 2) + encode(request, version)
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(self._exactly(4), "big")
        # Response header v1: the correlation id and an empty set of tagged fields.
        return decode(kind, self._exactly(size)[5:], version)

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return bytes(data)

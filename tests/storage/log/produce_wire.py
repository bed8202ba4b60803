"""One batch to a partition of a real broker, as it is: no client between that mends it."""

from __future__ import annotations

import socket
import time

from kraftline.schema.api.header import RequestHeader
from kraftline.schema.api.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraftline.schema.codec import decode, encode

VERSION = 11
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6


class Producer:
    """A connection that sends batches and gives back the partition's answer."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, 30)

    def send(self, topic: str, data: bytes) -> PartitionProduceResponse:
        """The answer; asked again while a new topic is not known to its leader yet."""
        for _ in range(100):
            said = self._send(topic, data)
            if said.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER):
                break
            time.sleep(0.05)
        return said

    def _send(self, topic: str, data: bytes) -> PartitionProduceResponse:
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=(
                TopicProduceData(
                    name=topic, partition_data=(PartitionProduceData(index=0, records=data),)
                ),
            ),
        )
        header = RequestHeader(
            request_api_key=0, request_api_version=VERSION, correlation_id=1, client_id="odd"
        )
        frame = encode(header, 2) + encode(request, VERSION)
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(self._exactly(4), "big")
        # Response header v1: the correlation id and an empty set of tagged fields.
        answer = decode(ProduceResponse, self._exactly(size)[5:], VERSION)
        [topic_answer] = answer.responses
        [partition] = topic_answer.partition_responses
        return partition

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return bytes(data)

"""One request to a broker over a plain socket, in Kafka's own encoding.

For what no client library at hand can do (streams groups without kafka-streams).
"""

from __future__ import annotations

import socket

from tests.oracle.bridge import MessageBridge
from tests.oracle.lines import Json


def request(
    bridge: MessageBridge, address: tuple[str, int], api: str, key: int, version: int, body: Json
) -> Json:
    """Send one flexible-version request and return the response."""
    header: Json = {
        "requestApiKey": key,
        "requestApiVersion": version,
        "correlationId": 1,
        "clientId": "kraftline",
    }
    data = bridge.encode("RequestHeader", 2, header) + bridge.encode(f"{api}Request", version, body)
    with socket.create_connection(address, 10) as connection:
        connection.sendall(len(data).to_bytes(4, "big") + data)
        size = int.from_bytes(_exactly(connection, 4), "big")
        answer = _exactly(connection, size)
    # Response header v1: the correlation id and an empty set of tagged fields.
    return bridge.decode(f"{api}Response", version, answer[5:])


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return data

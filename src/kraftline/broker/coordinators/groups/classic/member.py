"""A member of a classic group, with the requests of it that wait for others."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from kraftline.schema.api.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from kraftline.schema.api.sync_group import SyncGroupResponse

R = TypeVar("R", JoinGroupResponse, SyncGroupResponse)


class Parked(Generic[R]):
    """A request that waits. Its client may be gone when the answer comes; nobody notices."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def answer(self, response: R) -> None:
        if not self.future.done():
            self.future.set_result(response)


class Member:
    """`protocols` are those that it can take part in, best first; `is_new` until it has been told
    its id: it has not been told how to send heartbeats either."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: tuple[JoinGroupRequestProtocol, ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.join: Parked[JoinGroupResponse] | None = None
        self.sync: Parked[SyncGroupResponse] | None = None

    def __repr__(self) -> str:
        return f"Member({self.member_id})"

    @property
    def is_alive(self) -> bool:
        """Does it wait for an answer, so that no heartbeat is expected of it?"""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        for each in self.protocols:
            if each.name == protocol:
                return each.metadata
        raise ValueError(f"{self} does not take part in {protocol}")

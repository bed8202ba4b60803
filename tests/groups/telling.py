"""What clients of groups say, to real Kafka and to us; what differs by its nature gets a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import msgspec

from kraftline.errors import Truncated
from kraftline.records import Batch, batches
from kraftline.schema.api.fetch import FetchPartition, FetchRequest, FetchTopic
from kraftline.schema.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kraftline.schema.api.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraftline.schema.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftline.schema.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kraftline.schema.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kraftline.schema.codec import encode
from kraftline.schema.coordinator.consumer_protocol import ConsumerProtocolSubscription
from kraftline.schema.coordinator.frame import OFFSETS, decode_key, decode_value
from kraftline.schema.types import Message
from tests.broker.comparing import Broker
from tests.broker.talking import Talk

_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES = {"commit_timestamp", "expire_timestamp", "current_state_timestamp"}


class Groups(Broker):
    """A broker whose groups have their own names here, and go by those of the story there. Each
    client has a connection of its own, so that one may wait while another asks."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self._groups: list[str] = []
        self._began: int | None = None
        self._random: dict[str, str] = {}
        self._asked: dict[str, tuple[Message, int]] = {}

    def group(self, name: str) -> str:
        own = f"{name}-{self._suffix}"
        self._names[own] = name
        self._groups.append(own)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(own,))
        while True:
            found = self.message(request, 6)
            assert isinstance(found, FindCoordinatorResponse)
            if not found.coordinators[0].error_code and self._is_loaded(own):
                break
        if self._began is None:
            self._began = self._end()
        return own

    def _is_loaded(self, group: str) -> bool:
        """Who is told where the coordinator is may be there before it."""
        asked = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group),))
        answer: Any = self.message(asked, 8)
        return answer.groups[0].error_code not in (14, 15, 16)

    def send(self, client: str, request: Message, version: int) -> None:
        """Ask without waiting for the answer, which `hear` gives."""
        talk = self._talks.get(client)
        if talk is None:
            talk = self._talks[client] = Talk(self.address, client)
        talk.send(request, version)
        self._asked[client] = request, version

    def heard(self, client: str) -> Any:
        return self._talks[client].receive(*self._asked.pop(client))

    def hear(self, client: str) -> object:
        return self.plain(self.heard(client))

    def plain(self, value: Any, name: str = "") -> Any:
        if name in _TIMES:
            return value if value == -1 else "a time"
        found = super().plain(value, name)
        if isinstance(found, bytes):
            for own, told in self._names.items():
                found = found.replace(own.encode(), told.encode())
        if isinstance(found, str):
            found = _RANDOM.sub(self._named, found)
        return found

    def _named(self, found: re.Match[str]) -> str:
        return self._random.setdefault(found[0], f"<{len(self._random) + 1}>")

    def records(self) -> list[tuple[str, object, object]]:
        """What the log has of the story's groups, in order."""
        written: list[tuple[str, object, object]] = []
        offset = self._began
        if offset is None:
            return []
        end = self._end()
        while offset < end:
            for batch in whole_batches(self._fetch(offset)):
                offset = batch.next_offset
                if batch.is_control:
                    continue
                for record in batch.records():
                    assert record.key is not None
                    key = decode_key(OFFSETS, record.key)
                    group = getattr(key, "group", getattr(key, "group_id", None))
                    if group not in self._groups:
                        continue
                    value: object = None
                    if record.value is not None:
                        message, version = decode_value(OFFSETS, key.SPEC.key, record.value)
                        value = version, self.plain(message)
                    written.append((type(key).__name__, self.plain(key), value))
        return written

    def _end(self) -> int:
        """Where the log of all groups ends."""
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name=OFFSETS.name,
                    partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),),
                ),
            ),
        )
        while True:
            answer: Any = self.message(request, 7)
            [told] = answer.topics[0].partitions
            if not told.error_code:
                end: int = told.offset
                return end

    def _fetch(self, offset: int) -> bytes:
        request = FetchRequest(
            max_bytes=1 << 20,
            topics=(
                FetchTopic(
                    topic=OFFSETS.name,
                    partitions=(
                        FetchPartition(
                            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                        ),
                    ),
                ),
            ),
        )
        answer: Any = self.message(request, 12)
        [topic] = answer.responses
        return bytes(topic.partitions[0].records or b"")


def whole_batches(data: bytes) -> Iterator[Batch]:
    """Those of a fetch, whose last may be cut."""
    try:
        yield from batches(data)
    except Truncated:
        return


Story: TypeAlias = "Callable[[Groups], list[object]]"


def compare(story: Story, real: tuple[str, int], ours: tuple[str, int]) -> None:
    """Answers, and what is written to the log about them. Both hear it at the same time."""
    with ThreadPoolExecutor(2) as both:
        (expected, theirs), (got, mine) = both.map(partial(_told, story), (real, ours))
    for number, (wanted, found) in enumerate(zip(expected, got, strict=True)):
        assert found == wanted, f"answer {number}"
    assert mine == theirs


def _told(story: Story, address: tuple[str, int]) -> tuple[list[object], object]:
    """The answers, and for each key the values that it has had."""
    broker = Groups(address)
    try:
        answers = story(broker)
        by_key: dict[str, list[object]] = {}
        for kind, key, value in broker.records():
            by_key.setdefault(f"{kind} {key}", []).append(value)
        return answers, by_key
    finally:
        broker.close()


def subscription(*topics: str, version: int = 1, **fields: Any) -> bytes:
    """What a consumer says of itself."""
    message = ConsumerProtocolSubscription(topics=topics, **fields)
    return version.to_bytes(2, "big") + encode(message, version)


def joining(
    group: str,
    member_id: str = "",
    *,
    protocols: tuple[tuple[str, bytes], ...] | None = None,
    instance: str | None = None,
    session: int = 30_000,
    rebalance: int = 30_000,
    type: str = "consumer",
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        group_instance_id=instance,
        session_timeout_ms=session,
        rebalance_timeout_ms=rebalance,
        protocol_type=type,
        protocols=tuple(
            JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in (
                (("range", subscription("t")),) if protocols is None else protocols
            )
        ),
    )


def syncing(
    group: str,
    joined: JoinGroupResponse,
    *assignments: tuple[str, bytes],
    version: int = 5,
    instance: str | None = None,
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
        protocol_type=(joined.protocol_type or "consumer") if version >= 5 else None,
        protocol_name=joined.protocol_name if version >= 5 else None,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=each, assignment=data)
            for each, data in assignments
        ),
    )


def member_id(broker: Groups, group: str, client: str, **fields: Any) -> str:
    """A new member asks for its id."""
    answer: Any = broker.message(joining(group, **fields), 9, client)
    assert answer.error_code == 79
    broker.plain(answer)  # so that it is known by the order of asking
    found: str = answer.member_id
    return found


def joined(broker: Groups, group: str, client: str, **fields: Any) -> JoinGroupResponse:
    """Join alone and be told the generation."""
    id = member_id(broker, group, client, **fields)
    answer = broker.message(joining(group, id, **fields), 9, client)
    assert isinstance(answer, JoinGroupResponse)
    return answer


def but(message: Message, **fields: Any) -> Any:
    return msgspec.structs.replace(message, **fields)

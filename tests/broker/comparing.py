"""The same conversation with real Kafka and with us; whatever differs is a fault of ours."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from kraftline.schema.api.fetch import FetchableTopicResponse, PartitionData
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.broker.running import create_topic
from tests.broker.talking import Closed, Talk

# Differ from broker to broker, or from one moment to the next.
_OWN = {"total_bytes", "usable_bytes", "log_dir", "host", "port"}


class Broker:
    """One of the two. Topics have their own names here, and go by those of the story there."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._suffix = uuid.uuid4().hex[:8]
        self._names: dict[str, str] = {}
        self._ids: dict[Uuid, str] = {}
        self._sessions: dict[int, str] = {0: "none"}
        self._talks: dict[str | None, Talk] = {}

    def topic(
        self, name: str, settings: Mapping[str, str] | None = None, *, partitions: int = 1
    ) -> tuple[str, Uuid]:
        """A new topic: its name here and its id."""
        own = f"{name}-{self._suffix}"
        id = create_topic(self.address, own, settings, partitions=partitions)
        self._names[own] = name
        self._ids[id] = name
        return own, id

    def ask(self, request: Message, version: int, client: str | None = "talk") -> object:
        """The answer in plain values, with names for what differs by its nature."""
        answer = self.message(request, version, client)
        return answer if isinstance(answer, str) else self.plain(answer)

    def message(self, request: Message, version: int, client: str | None = "talk") -> Message | str:
        talk = self._talks.get(client)
        if talk is None:
            talk = self._talks[client] = Talk(self.address, client)
        try:
            return talk.ask(request, version)
        except Closed:
            self._talks.pop(client).socket.close()
            return "closed"

    def close(self) -> None:
        for talk in self._talks.values():
            talk.socket.close()

    def plain(self, value: Any, name: str = "") -> Any:
        match value:
            case Message():
                return {
                    field: self.plain(inner, field)
                    for field, inner in msgspec.structs.asdict(value).items()
                    if field not in _OWN
                }
            case tuple() | list():
                found = [self.plain(each, name) for each in value]
                # Kafka keeps most of these in hash maps: only in a fetch does their order matter.
                if not any(
                    isinstance(each, FetchableTopicResponse | PartitionData) for each in value
                ):
                    found.sort(key=str)
                return found
            case Uuid():
                return self._ids.get(value, str(value))
            case int() if name == "session_id":
                return self._sessions.setdefault(value, f"session {len(self._sessions)}")
            case int() if name in ("log_append_time_ms",) and value > 0:
                return "now"
            case str():
                for own, told in self._names.items():
                    value = value.replace(own, told)
                return value
        return value


Story: TypeAlias = "Callable[[Broker], list[object]]"


def compare(story: Story, real: tuple[str, int], ours: tuple[str, int]) -> None:
    answers = []
    for address in (real, ours):
        broker = Broker(address)
        try:
            answers.append(story(broker))
        finally:
            broker.close()
    expected, got = answers
    for number, (theirs, mine) in enumerate(zip(expected, got, strict=True)):
        assert mine == theirs, f"answer {number}"

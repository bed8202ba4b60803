"""Rebalances beside real Kafka: `python -m benchmarks.rebalance`.

Fifty members, each with a connection of its own, speak the protocol themselves: of the new one and
of the classic one. How long until all have joined a new group and have what they are to have; until
the others share what one has left behind; and until one more has its part. Members answer at once,
so that what is measured is the coordinator, not how often clients send heartbeats; Kafka's pauses
(a second between two targets of the new protocol, three before a classic group begins) are switched
off for both. The best of some rounds.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import click

from benchmarks.beside import Broker, Measured, Seen, both, show
from kraftline.schema.api.join_group import JoinGroupResponse
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.broker.consumer_groups.migration_stories import given, wanting
from tests.broker.consumer_groups.telling import ConsumerGroups, alive, join, leave
from tests.broker.running import create_topic
from tests.broker.talking import Talk
from tests.groups.classic_stories import beat, leaving
from tests.groups.telling import joining, syncing

_PARTITIONS = 100
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
_TOPIC = "rebalance"
_REBALANCING = 27
_ID_REQUIRED = 79
_PAUSE = 0.001  # so that members do not ask without end


class NewMember:
    """Of the new protocol: it does at once what it is told."""

    def __init__(self, address: tuple[str, int], group: str, name: str) -> None:
        self.talk = Talk(address, name)
        self.name = name
        self.group = group
        self.epoch = 0
        self.owned: dict[Uuid, tuple[int, ...]] = {}
        self.is_settled = False
        self._says = True
        self._asked: Any = None

    def send(self) -> None:
        if self.epoch == 0:
            self._asked = join(self.group, self.name, _TOPIC)
        else:
            held = tuple(self.owned.items()) if self._says else None
            self._asked = alive(self.group, self.name, self.epoch, held)
        self.talk.send(self._asked, 1)

    def receive(self) -> None:
        answer: Any = self.talk.receive(self._asked, 1)
        assert answer.error_code == 0, answer
        self.is_settled = answer.member_epoch == self.epoch and answer.assignment is None
        self.epoch = answer.member_epoch
        self._says = answer.assignment is not None
        if answer.assignment is not None:
            self.owned = {
                each.topic_id: each.partitions for each in answer.assignment.topic_partitions
            }


class NewGroup:
    def __init__(self, broker: ConsumerGroups, name: str, stack: ExitStack) -> None:
        self.group = broker.consumer_group(name)
        self._address = broker.address
        self._stack = stack
        self.members: list[NewMember] = []

    def add(self, count: int) -> None:
        for _ in range(count):
            member = NewMember(self._address, self.group, f"member-{len(self.members)}")
            self._stack.enter_context(member.talk)
            self.members.append(member)

    def leave(self) -> None:
        member = self.members.pop()
        answer: Any = member.talk.ask(leave(self.group, member.name), 1)
        assert answer.error_code == 0, answer

    def settle(self) -> None:
        """Heartbeats of all, again and again, until all partitions are where they should be."""
        while True:
            for member in self.members:
                member.send()
            for member in self.members:
                member.receive()
            owned = sum(len(each) for member in self.members for each in member.owned.values())
            if owned == _PARTITIONS and all(
                member.is_settled and member.epoch == self.members[0].epoch
                for member in self.members
            ):
                return


class ClassicMember:
    """Of the classic protocol: joins, asks for its part, and sends heartbeats to hear of the next
    rebalance. `step` is what it has asked last; None: it waits to send a heartbeat."""

    def __init__(self, address: tuple[str, int], group: str, name: str) -> None:
        self.talk = Talk(address, name)
        self.group = group
        self.told = JoinGroupResponse()
        self.is_stable = False
        self.step: Callable[[Any], None] | None = None
        self._asked: tuple[Message, int] | None = None

    def join(self) -> None:
        self.is_stable = False
        request = joining(self.group, self.told.member_id, protocols=wanting(_TOPIC))
        self._send(request, 9, self._joined)

    def beat(self) -> None:
        self._send(beat(self.group, self.told), 4, self._beaten)

    def receive(self) -> None:
        assert self._asked is not None
        assert self.step is not None
        answer = self.talk.receive(*self._asked)
        step, self.step = self.step, None
        step(answer)

    def _send(self, request: Message, version: int, step: Callable[[Any], None]) -> None:
        self.talk.send(request, version)
        self._asked = request, version
        self.step = step

    def _joined(self, answer: Any) -> None:
        if answer.error_code == _ID_REQUIRED:
            self.told = answer
        if answer.error_code:
            self.join()
            return
        self.told = answer
        count = len(answer.members)
        parts = tuple(
            (each.member_id, given(_TOPIC, *range(at, _PARTITIONS, count)))
            for at, each in enumerate(answer.members)
        )
        self._send(syncing(self.group, answer, *parts), 5, self._synced)

    def _synced(self, answer: Any) -> None:
        if answer.error_code:
            self.join()
        else:
            self.is_stable = True

    def _beaten(self, answer: Any) -> None:
        if answer.error_code == _REBALANCING:
            self.join()
        else:
            assert answer.error_code == 0, answer


class ClassicGroup:
    def __init__(self, broker: ConsumerGroups, name: str, stack: ExitStack) -> None:
        self.group = broker.group(name)
        self._address = broker.address
        self._stack = stack
        self.members: list[ClassicMember] = []

    def add(self, count: int) -> None:
        for _ in range(count):
            member = ClassicMember(self._address, self.group, f"member-{len(self.members)}")
            self._stack.enter_context(member.talk)
            self.members.append(member)
            member.join()

    def leave(self) -> None:
        member = self.members.pop()
        answer: Any = member.talk.ask(leaving(self.group, (member.told.member_id, None)), 5)
        assert answer.error_code == 0, answer

    def settle(self) -> None:
        """Until all have their part in the same generation, which has no more members."""
        with selectors.DefaultSelector() as selector:
            for member in self.members:
                selector.register(member.talk.socket, selectors.EVENT_READ, member)
            while not self._is_settled():
                for member in self.members:
                    if member.step is None:
                        member.beat()
                for key, _ in selector.select():
                    key.data.receive()
                time.sleep(_PAUSE)
            for member in self.members:
                if member.step is not None:
                    member.receive()

    def _is_settled(self) -> bool:
        leader = [member for member in self.members if member.told.members]
        return (
            all(member.is_stable for member in self.members)
            and len({member.told.generation_id for member in self.members}) == 1
            and len(leader) == 1
            and len(leader[0].told.members) == len(self.members)
        )


Group = NewGroup | ClassicGroup


def _steps(group: Group, count: int) -> Iterator[tuple[str, float]]:
    """What is measured, and how many seconds each took."""
    works: Mapping[str, Callable[[], None]] = {
        f"{count} join": lambda: group.add(count),
        "one leaves": group.leave,
        "one joins": lambda: group.add(1),
    }
    for name, work in works.items():
        start = time.perf_counter()
        work()
        group.settle()
        yield name, time.perf_counter() - start


def measure(broker: Broker, turn: int, members: int) -> dict[str, Measured]:
    host, port = broker.bootstrap.split(":")
    address = host, int(port)
    create_topic(address, _TOPIC, partitions=_PARTITIONS, unless_there=True)
    found = {}
    for kind, make in (("new", NewGroup), ("classic", ClassicGroup)):
        talk = ConsumerGroups(address)
        with ExitStack() as stack:
            stack.callback(talk.close)
            before = broker.cpu()
            for step, seconds in _steps(make(talk, f"{kind}-{turn}", stack), members):
                after = broker.cpu()
                found[f"{kind}: {step}, ms"] = Measured(seconds * 1000, after - before)
                before = after
    return found


@click.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--members", default=50, show_default=True, type=click.IntRange(min=2))
@click.option("--heap", default="1g", show_default=True, help="Of Kafka's JVM.")
def main(rounds: int, members: int, heap: str) -> None:
    """Rebalances of both protocols, beside real Kafka."""
    seen = Seen()
    with both(heap, _SETTINGS) as (theirs, mine):
        for turn in range(rounds):
            for found, broker in ((seen.kafka, theirs), (seen.us, mine)):
                for name, measured in measure(broker, turn, members).items():
                    found.setdefault(name, []).append(measured)
    show(seen.table())


if __name__ == "__main__":
    main()

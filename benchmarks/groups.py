"""Groups beside real Kafka: `python -m benchmarks.groups`.

- Commits: 100 clients, each of a group of its own, each with a connection, one commit after the
  other; of one partition and of ten. What they send is made before, so that a client costs little.
- Rebalances of a classic group: its leader joins again, the others hear of it and follow, all are
  assigned.
- Loading a partition of the offsets topic, as each broker's own log tells it.

Real Kafka runs with its defaults, and first in each round. The best of some rounds.
"""

from __future__ import annotations

import re
import selectors
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.beside import Broker, Measured, Seen, both, show
from kraftline.broker.coordinators.groups.offsets import Committed, commit_pair, offset_keys
from kraftline.records import Record, build_batch
from kraftline.schema.api.offset_commit import OffsetCommitRequest
from kraftline.schema.codec import encode
from kraftline.schema.coordinator.frame import OFFSETS
from kraftline.schema.uuids import Uuid
from tests.groups.classic_stories import stable, until_rebalancing
from tests.groups.offset_stories import commit
from tests.groups.telling import Groups, joining, syncing
from tests.node.running import OurNode
from tests.oracle.kafka import KraftCluster

GROUPS: Final = 100
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "1",
}
_NOW: Final = 1_763_265_600_000
_LOADED_BY_KAFKA: Final = re.compile(
    r"Finished loading of metadata from __consumer_offsets-0 .*? in (\d+)ms .*Loaded \d{4,} records"
)
_LOADED_BY_US: Final = re.compile(r"__consumer_offsets-0: \d+ records loaded in (\d+) ms")


@dataclass
class Sender:
    """A client's connection; `frames` are still to be sent, answers have `size` bytes."""

    channel: socket.socket
    frames: Iterator[bytes]
    size: int
    have: int = 0

    @classmethod
    def of(cls, address: tuple[str, int], requests: list[OffsetCommitRequest]) -> Sender:
        frames = iter([_frame(request, number) for number, request in enumerate(requests)])
        channel = socket.create_connection(address)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel.sendall(next(frames))
        size = int.from_bytes(channel.recv(4, socket.MSG_WAITALL), "big")
        channel.recv(size, socket.MSG_WAITALL)
        return cls(channel, frames, 4 + size)

    def send(self) -> None:
        following = next(self.frames, None)
        if following is not None:
            self.channel.sendall(following)

    def receive(self) -> int:
        """How many answers are there now: one, or none yet."""
        self.have += len(self.channel.recv(1 << 16))
        if self.have < self.size:
            return 0
        self.have = 0
        self.send()
        return 1


def _frame(request: OffsetCommitRequest, number: int) -> bytes:
    head = (8).to_bytes(2, "big") + (9).to_bytes(2, "big") + number.to_bytes(4, "big")
    frame = head + (5).to_bytes(2, "big") + b"bench\0" + encode(request, 9)
    return len(frame).to_bytes(4, "big") + frame


def _address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def commits(broker: Broker, partitions: int, each: int) -> Measured:
    """A second, of all clients together."""
    told = Groups(_address(broker))
    topic = told.topic("commits", partitions=partitions)
    groups = [told.group(f"commits-{number}") for number in range(GROUPS)]
    told.close()
    chosen = selectors.DefaultSelector()
    senders = [
        Sender.of(
            _address(broker),
            [
                commit(group, (topic, tuple((number, offset) for number in range(partitions))))
                for offset in range(each + 1)
            ],
        )
        for group in groups
    ]
    for sender in senders:
        chosen.register(sender.channel, selectors.EVENT_READ, sender)
    before, start, done = broker.cpu(), time.perf_counter(), 0
    for sender in senders:
        sender.send()
    while done < each * GROUPS:
        for key, _ in chosen.select():
            done += key.data.receive()
    took = time.perf_counter() - start
    for sender in senders:
        sender.channel.close()
    return Measured(done / took, broker.cpu() - before)


def rebalances(broker: Broker, members: int, times: int) -> Measured:
    """Milliseconds of one."""
    told = Groups(_address(broker))
    group = told.group("rebalances")
    names = [f"m{number}" for number in range(members)]
    joined: dict[str, Any] = dict(stable(told, group, *names))
    before, start = broker.cpu(), time.perf_counter()
    for _ in range(times):
        leader = next(each for each in names if _leads(joined[each]))
        others = [each for each in names if each != leader]
        told.send(leader, joining(group, joined[leader].member_id), 9)
        until_rebalancing(told, group, others[0], joined[others[0]])
        for name in others:
            told.send(name, joining(group, joined[name].member_id), 9)
        joined = {name: told.heard(name) for name in names}
        given = [(each.member_id, b"x" * 50) for each in joined.values()]
        for name in names:
            mine = given if _leads(joined[name]) else []
            told.send(name, syncing(group, joined[name], *mine), 5)
        for name in names:
            assert told.heard(name).error_code == 0
    took = (time.perf_counter() - start) / times
    told.close()
    return Measured(took * 1000, broker.cpu() - before)


def _leads(joined: Any) -> bool:
    assert joined.error_code == 0, joined
    return bool(joined.leader == joined.member_id)


def live(seen: Seen, scale: float, rounds: int, heap: str) -> None:
    """What is asked of brokers that run."""
    each = max(int(300 * scale), 20)
    works: dict[str, Callable[[Broker], Measured]] = {
        "commits of 1 partition, 1/s": lambda broker: commits(broker, 1, each),
        "commits of 10 partitions, 1/s": lambda broker: commits(broker, 10, max(each // 3, 10)),
        "rebalance of 10 members, ms": lambda broker: rebalances(broker, 10, max(each // 5, 5)),
        "rebalance of 50 members, ms": lambda broker: rebalances(broker, 50, max(each // 10, 5)),
    }
    with both(heap, SETTINGS) as (theirs, mine):
        for _ in range(rounds):
            for name, work in works.items():
                seen.kafka.setdefault(name, []).append(work(theirs))
                seen.us.setdefault(name, []).append(work(mine))


def loading(seen: Seen, root: Path, count: int, keys: int, rounds: int) -> None:
    """A partition of so many commits, of so many different keys."""
    name = f"load {count:,} commits of {keys:,} keys, ms"
    roomy = {"log.index.size.max.bytes": "10485760"}  # the oracle's are small
    kafka = KraftCluster(root / f"load-{count}-{keys}", properties=roomy, dynamic=True)
    kafka.format(1)
    kafka.start()
    told = Groups(("127.0.0.1", kafka.port(1)))
    told.group("any")  # so that there is a topic
    told.close()
    kafka.stop()
    partition = kafka.data(1) / f"{OFFSETS.name}-0"
    for file in partition.glob("0*"):
        file.unlink()
    with (partition / f"{0:020}.log").open("wb") as segment:
        segment.writelines(_batches(count, keys))
    us = OurNode(root / f"us-{count}-{keys}", SETTINGS | {"offsets.topic.num.partitions": "1"})
    shutil.copytree(kafka.data(1), us.data)
    us.controller_port = kafka.controller_endpoint(1)[1]
    log = kafka.directory(1) / "server.log"
    for _ in range(rounds):
        kafka.start()
        seen.kafka.setdefault(name, []).append(_told(log.read_text, _LOADED_BY_KAFKA))
        kafka.stop()
        log.unlink()
        us.start()
        seen.us.setdefault(name, []).append(_told(us.output, _LOADED_BY_US))
        us.stop()


def _told(said: Callable[[], str], pattern: re.Pattern[str]) -> Measured:
    deadline = time.monotonic() + 300
    while not (found := pattern.findall(said())):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody said {pattern.pattern}")
        time.sleep(0.2)
    return Measured(float(found[-1]), 0.0)


def _batches(count: int, keys: int, size: int = 5) -> Iterator[bytes]:
    """Commits as brokers write them, some to a batch."""
    topic_id = Uuid(b"0123456789abcdef")
    names = [offset_keys(f"group-{key // 10}", "a-topic")(key % 10) for key in range(keys)]
    for first in range(0, count, size):
        pairs = [
            commit_pair(names[at % keys], Committed(at, 0, "", _NOW, topic_id=topic_id))
            for at in range(first, first + size)
        ]
        records = [Record(first + n, _NOW, *pair) for n, pair in enumerate(pairs)]
        yield build_batch(records, partition_leader_epoch=0)


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--scale", default=1.0, show_default=True, help="Of how much there is to do.")
@click.option("--heap", default="1g", show_default=True, help="Of Kafka's JVM.")
@click.option("--only", type=click.Choice(["live", "load"]), help="One part of it.")
def main(rounds: int, scale: float, heap: str, only: str | None) -> None:
    """Commits, rebalances, and loading of a node, beside real Kafka."""
    seen = Seen()
    if only != "load":
        live(seen, scale, rounds, heap)
    if only != "live":
        many = int(1_000_000 * scale)
        with tempfile.TemporaryDirectory(prefix="kraftline-beside-") as root:
            loading(seen, Path(root), many // 10, many // 100, rounds)
            loading(seen, Path(root), many, many // 100, rounds)
    show(seen.table())


if __name__ == "__main__":
    main()

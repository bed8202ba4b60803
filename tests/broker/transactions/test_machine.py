"""Any order of beginnings, records, ends, zombies, timeouts, partitions that go away, and restarts:
committed readers see each transaction whole or not at all, nobody who was fenced writes, and what
is loaded is what there was."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftline.broker.cache import MetadataCache
from kraftline.broker.coordinators.loading import Loading, load
from kraftline.broker.coordinators.shard import Shard
from kraftline.broker.coordinators.transactions.coordinator import (
    FEATURE,
    TransactionCoordinator,
)
from kraftline.broker.coordinators.transactions.state import TransactionsState
from kraftline.broker.coordinators.transactions.transaction import NONE, Status
from kraftline.broker.coordinators.transactions.transitions import Producer
from kraftline.broker.coordinators.transactions.verification import Client, Write, verify
from kraftline.broker.partition import Partition
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import EMPTY
from kraftline.metadata.partition import PartitionRegistration
from kraftline.node.standalone import standalone_config
from kraftline.records import Record, batches, build_batch
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import TRANSACTIONS
from kraftline.schema.uuids import Uuid
from kraftline.storage.log import LogConfig, PartitionLog
from tests.effort import rounds

T = TypeVar("T")
IDS: Final = ("a", "b")
PARTITIONS: Final = (0, 1)
TIMEOUT_MS: Final = 10_000
TOPIC_ID: Final = Uuid(bytes(15) + b"\1")
_LOG = LogConfig(timestamp_after_max_ms=2**62)
_WAITS = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Ids:
    """Producer ids for everybody."""

    def __init__(self) -> None:
        self.next = 0

    async def take(self) -> int:
        self.next += 1
        return self.next


class Handle:
    """A producer as its client knows it; `values` are what it wrote in the open transaction."""

    def __init__(self, id: str, producer: Producer, client: Client) -> None:
        self.id = id
        self.who = producer
        self.client = client
        self.values: list[tuple[int, int]] = []
        self.sequences: dict[int, int] = {}
        self.is_alive = True


class Broker:
    """What a coordinator needs of a broker, over logs in a directory."""

    def __init__(self, root: Path, clock: Any, ids: Ids, version: int) -> None:
        self.threads = ThreadPoolExecutor(1)
        self.broker_id = 1
        self._registration = PartitionRegistration((1,), (TOPIC_ID,), (1,), 1, 0, 0)
        self.parts = {
            (topic, number): self._open(root, topic, number, clock)
            for topic, number in (*(("t", n) for n in PARTITIONS), (TRANSACTIONS.name, 0))
        }
        cache = MetadataCache()
        features = msgspec.structs.replace(
            EMPTY.features, levels=EMPTY.features.levels.set(FEATURE, version)
        )
        cache.image = msgspec.structs.replace(EMPTY, features=features)
        config = standalone_config({"log.dirs": str(root)})
        self.coordinator = TransactionCoordinator(config, cache, self, None, ids, clock)  # type: ignore[arg-type]  # as much of these as it needs
        self.state = self._load(clock)

    def _open(self, root: Path, topic: str, number: int, clock: Any) -> Partition:
        log = PartitionLog.open(root / f"{topic}-{number}", _LOG, topic_id=TOPIC_ID, clock=clock)
        partition = Partition(1, log, TOPIC_ID)
        partition.lead(self._registration)
        return partition

    def _load(self, clock: Any) -> TransactionsState:
        shard: Shard[TransactionsState] = Shard(
            TRANSACTIONS, self.parts[TRANSACTIONS.name, 0], clock, self.threads, self.flush_later
        )
        state = self.coordinator._state(shard)
        shard.state = replayed(shard, state)
        self.coordinator.shards = Found(state)  # type: ignore[assignment]  # as much of it as it needs
        state.loaded()
        return state

    def find(self, topic: str, number: int, topics: object) -> Partition:
        return self.parts[topic, number]

    def flush_later(self, partition: Partition) -> None:
        partition.log.flush()

    def close(self, *, in_order: bool) -> None:
        self.state.shard.close()
        self.threads.shutdown()
        for each in self.parts.values():
            each.log.close() if in_order else each.log.release()


class Found:
    """The one partition that there is."""

    partition_count = 1

    def __init__(self, state: TransactionsState) -> None:
        self._state = state

    def of(self, id: str) -> TransactionsState:
        return self._state


def _check(refusal: Refusal, excused: tuple[ErrorCode, ...]) -> None:
    assert refusal.code in excused, refusal.code


def replayed(shard: Shard[TransactionsState], state: TransactionsState) -> TransactionsState:
    log = shard.partition.log
    load(log, TRANSACTIONS, state, Loading(log.start_offset, log.end_offset), lambda: True)
    return state


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="transactions-"))
        self.loop = asyncio.new_event_loop()
        self.now = 1_700_000_000_000
        self.ids = Ids()
        self.version = 2
        self.handles: list[Handle] = []
        self.given: set[tuple[int, int]] = set()
        self.written = 0
        self.committed: list[list[int]] = [[] for _ in PARTITIONS]
        self.broker = self.run(self._start())

    async def _start(self) -> Broker:
        return Broker(self.root, lambda: self.now, self.ids, self.version)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.broker.close(in_order=True)
        self.loop.close()
        shutil.rmtree(self.root)

    def newest(self, id: str) -> Handle | None:
        return next((h for h in reversed(self.handles) if h.id == id), None)

    # What clients do

    @rule(id=st.sampled_from(IDS), client=st.sampled_from([Client.OLD, Client.ADDS]))
    def begin(self, id: str, client: Client) -> None:
        async def ask() -> Producer | None:
            for _ in range(3):
                try:
                    return await self.broker.coordinator.initialise(id, TIMEOUT_MS, None)
                except Refusal as refusal:
                    _check(refusal, _WAITS)
            return None  # a partition is away, and cannot hear of the end of the one before

        known = self.broker.state.transactions.get(id)
        was_open = known is not None and known.status is Status.ONGOING
        producer = self.run(ask())
        if producer is None or was_open:
            self._lost(id)
        if producer is None:
            return
        pair = producer.id, producer.epoch
        assert pair not in self.given, "nobody has it but this one"
        self.given.add(pair)
        for each in self.handles:
            if each.id == id:
                each.is_alive = False
        self.handles.append(Handle(id, producer, client))

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), number=st.sampled_from(PARTITIONS))
    def write(self, data: st.DataObject, number: int) -> None:
        handle = data.draw(st.sampled_from(self.handles[-4:]))
        self.run(self._write(handle, number))

    async def _write(self, handle: Handle, number: int) -> None:
        broker = self.broker
        partition = broker.parts["t", number]
        sequence = handle.sequences.get(number, 0)
        try:
            if handle.client is Client.OLD:
                broker.coordinator.add(handle.id, handle.who, [("t", number)], 0)
        except Refusal as refusal:
            if handle.is_alive:
                _check(refusal, _WAITS)
            return
        write = Write("t", number, sequence, partition)
        verdicts = verify(broker.coordinator, handle.id, handle.who, handle.client, [write])
        assert isinstance(verdicts, dict)
        if verdicts:
            [error] = verdicts.values()
            assert not handle.is_alive or error in _WAITS, error
            return
        assert handle.is_alive, "who was fenced writes nothing"
        self.written += 1
        batch = build_batch(
            [Record(0, self.now, b"k", b"%d" % self.written)],
            producer_id=handle.who.id,
            producer_epoch=handle.who.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        partition.log.append(bytearray(batch), 0)
        broker.coordinator.verifications.appended("t", number, handle.who.id)
        partition.advanced()
        handle.sequences[number] = sequence + 1
        handle.values.append((number, self.written))

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), is_commit=st.booleans(), again=st.booleans())
    def end(self, data: st.DataObject, is_commit: bool, again: bool) -> None:
        handle = data.draw(st.sampled_from(self.handles[-4:]))
        self.run(self._end(handle, is_commit, again))

    async def _end(self, handle: Handle, is_commit: bool, again: bool) -> None:
        version = 2 if handle.client is Client.ADDS else 0
        before = handle.who
        try:
            then = self.broker.coordinator.end(handle.id, before, is_commit, version)
            if not isinstance(then, Producer):
                then = await then
        except Refusal as refusal:
            # Empty ones cannot be committed, nor ended at all by old clients.
            if handle.is_alive:
                _check(refusal, (*_WAITS, ErrorCode.INVALID_TXN_STATE))
            return
        if not handle.is_alive:
            # Only somebody whose end has come may be told so again; nothing of its is new.
            return
        if is_commit:
            for number, value in handle.values:
                self.committed[number].append(value)
        handle.values = []
        if then != before:
            assert (then.id, then.epoch) not in self.given
            self.given.add((then.id, then.epoch))
            handle.who, handle.sequences = then, {}
        if again and version == 2 and not self._is_waiting(handle.id):
            told = self.broker.coordinator.end(handle.id, before, is_commit, version)
            assert told == then

    # What happens to them

    @rule()
    def time_passes(self) -> None:
        self.now += TIMEOUT_MS // 2 + 1

        async def sweep() -> None:
            self.broker.coordinator._sweep(self.broker.state)
            await asyncio.gather(*self.broker.coordinator._tasks)

        late = [
            each.id
            for each in self.broker.state.ongoing.values()
            if each.started_at + each.timeout_ms < self.now
        ]
        self.run(sweep())
        for id in late:
            self._lost(id)

    @rule(number=st.sampled_from(PARTITIONS))
    def a_partition_goes_away(self, number: int) -> None:
        self.broker.parts["t", number].is_leader = False

    @rule()
    def partitions_come_back(self) -> None:
        async def again() -> None:
            for each in self.broker.parts.values():
                each.is_leader = True
            for id in tuple(self.broker.state.unmarked):
                self.broker.coordinator._finish(self.broker.state, id)

        self.run(again())

    @rule(in_order=st.booleans())
    def restart(self, in_order: bool) -> None:
        self.broker.close(in_order=in_order)
        self.broker = self.run(self._start())

    def _lost(self, id: str) -> None:
        """The open transaction was aborted from there, and its producer fenced."""
        handle = self.newest(id)
        if handle is not None:
            handle.values = []
            handle.is_alive = False

    def _is_waiting(self, id: str) -> bool:
        return self.broker.state.transactions[id].status.is_prepared

    # What is always so

    @invariant()
    def what_is_loaded_is_what_there_is(self) -> None:
        state = self.broker.state
        fresh = replayed(state.shard, TransactionsState(state.shard, lambda state: None))
        assert fresh.transactions == {
            id: msgspec.structs.replace(each, last_epoch=NONE)
            for id, each in state.transactions.items()
        }
        assert fresh.ongoing.keys() == state.ongoing.keys()

    @invariant()
    def a_transaction_that_is_over_is_open_nowhere(self) -> None:
        over = {
            each.producer_id: each.epoch
            for each in self.broker.state.transactions.values()
            if each.status.is_over
        }
        for number in PARTITIONS:
            for producer in self.broker.parts["t", number].log.producers.all():
                if producer.txn_first_offset >= 0:
                    assert producer.id not in over

    @invariant()
    def readers_see_what_was_committed(self) -> None:
        for number in PARTITIONS:
            seen = self._seen(number)
            known = self.committed[number]
            if not any(self._is_waiting(id) for id in self.broker.state.transactions):
                unstable = {value for h in self.handles for n, value in h.values if n == number}
                first = min(unstable, default=self.written + 1)
                assert seen == [each for each in sorted(known) if each < first]
            # What is on its way to a partition that is away is not there yet.
            assert set(seen) <= set(known)
            assert seen == sorted(seen)

    def _seen(self, number: int) -> list[int]:
        log = self.broker.parts["t", number].log
        found = log.read_committed(log.start_offset, 1 << 20)
        aborted = {(each.producer_id, each.first_offset) for each in found.aborted}
        values: list[int] = []
        out: set[int] = set()
        for batch in batches(found.range.read()):
            if batch.base_offset >= log.last_stable_offset:
                break
            if batch.is_control:
                out.discard(batch.producer_id)
                continue
            if (batch.producer_id, batch.base_offset) in aborted:
                out.add(batch.producer_id)
            if batch.producer_id not in out:
                values += [int(record.value or b"") for record in batch.records()]
        return values


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(
    max_examples=rounds(25),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

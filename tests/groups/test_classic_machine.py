"""Any order of joins, syncs, heartbeats, leaves, commits, pauses and restarts: a classic group is
sound, nobody waits for ever, and what was acknowledged is there after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.joining import Joiner, join
from kraftline.broker.coordinators.groups.classic.leaving import leave
from kraftline.broker.coordinators.groups.classic.syncing import heartbeat, sync
from kraftline.broker.coordinators.groups.offsets import Committed, commit_pair, offset_keys
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.leave_group import MemberIdentity
from tests.effort import rounds
from tests.groups.memory import MemoryShard, VirtualLoop, started
from tests.groups.states import config_of, loaded_from, told
from tests.groups.telling import joining, syncing

GROUP = "g"
CLIENTS = st.sampled_from(["a", "b", "c", "d"])
PROTOCOLS = st.sampled_from([("x",), ("x", "y"), ("y", "x"), ("z", "x")])
INSTANCE = {"c": "static-c", "d": "static-d"}
_MAY_BE = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.NOT_COORDINATOR,
)
SESSION_MS = 10_000
REBALANCE_MS = 20_000


class Client:
    """`waiting` is what it has asked and not been told, `said` the last answer to a join."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.instance = INSTANCE.get(name)
        self.member_id = ""
        self.said: Any = None
        self.waiting: asyncio.Future[Any] | None = None
        self.is_joining = False
        self.is_synced = False

    def hear(self) -> None:
        """What came for it meanwhile."""
        future = self.waiting
        if future is None or not future.done():
            return
        self.waiting = None
        self.told(future.result())

    def told(self, answer: Any) -> None:
        if not self.is_joining:
            self.is_synced = answer.error_code == ErrorCode.NONE
            return
        self.is_synced = False
        self.said = answer if answer.error_code == ErrorCode.NONE else None
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""


class ClassicGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.config = config_of(
            group_initial_rebalance_delay_ms=3000,
            group_max_size=3,
            offsets_retention_minutes=100000,
        )
        self.batches: list[bytes] = []
        self.state = started(self.loop, self.batches, self.config)
        self.clients = {name: Client(name) for name in ("a", "b", "c", "d")}
        self.committed: dict[int, int] = {}
        self.generation = 0
        self.lost_a_write = False

    @property
    def group(self) -> ClassicGroup | None:
        group = self.state.groups.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    @property
    def shard(self) -> MemoryShard:
        assert isinstance(self.state.shard, MemoryShard)
        return self.state.shard

    def ask(self, client: Client, work: Any) -> None:
        async def call() -> Any:
            try:
                answer = work()
            except Refusal as refusal:
                return refusal
            if asyncio.isfuture(answer):
                client.waiting = answer
                return None
            return answer

        answer = self.loop.run(call())
        if isinstance(answer, Refusal):
            client.is_synced = False
            if answer.code == ErrorCode.UNKNOWN_MEMBER_ID:
                client.member_id = ""
                client.said = None
        elif answer is not None:
            client.told(answer)
        self.loop.settle()
        for each in self.clients.values():
            each.hear()

    @rule(name=CLIENTS, protocols=PROTOCOLS, version=st.sampled_from([3, 5, 9]))
    def joins(self, name: str, protocols: tuple[str, ...], version: int) -> None:
        client = self.clients[name]
        if client.waiting is not None:
            return
        request = joining(
            GROUP,
            client.member_id,
            protocols=tuple((each, f"{name} {each}".encode()) for each in protocols),
            instance=client.instance,
            session=SESSION_MS,
            rebalance=REBALANCE_MS,
            type="own",
        )
        if client.member_id and self.group is None:
            client.member_id = ""
            return
        joiner = Joiner(request, version, name, "/127.0.0.1", REBALANCE_MS)
        client.is_joining = True
        self.ask(client, lambda: join(self.state, self.state.classic_group(GROUP), joiner))

    @rule(name=CLIENTS)
    def syncs(self, name: str) -> None:
        client, group = self.clients[name], self.group
        if client.said is None or client.waiting is not None or group is None:
            return
        given = [(each.member_id, f"to {each.member_id}".encode()) for each in client.said.members]
        client.is_joining = False
        request = syncing(GROUP, client.said, *given, instance=client.instance)
        self.ask(client, lambda: sync(self.state, group, request))

    @rule(name=CLIENTS)
    def beats(self, name: str) -> None:
        client, group = self.clients[name], self.group
        if client.said is None or client.waiting is not None or group is None:
            return
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=client.said.generation_id,
            member_id=client.member_id,
            group_instance_id=client.instance,
        )
        try:
            self.loop.run(_later(lambda: heartbeat(self.state, group, request)))
        except Refusal as refusal:
            if refusal.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                client.member_id, client.said = "", None

    @rule(name=CLIENTS, by_instance=st.booleans())
    def leaves(self, name: str, by_instance: bool) -> None:
        client, group = self.clients[name], self.group
        if group is None or (client.waiting is not None and not by_instance):
            return
        who = MemberIdentity(
            member_id="" if by_instance else client.member_id, group_instance_id=client.instance
        )
        self.loop.run(_later(lambda: leave(self.state, group, [who])))
        self.loop.settle()
        for each in self.clients.values():
            each.hear()
        if client.waiting is None:
            client.member_id, client.said = "", None

    @rule(name=CLIENTS, partition=st.integers(0, 2), offset=st.integers(0, 99))
    def commits(self, name: str, partition: int, offset: int) -> None:
        client, group = self.clients[name], self.group
        generation = client.said.generation_id if client.said is not None else -1
        member_id = client.member_id if client.said is not None else ""
        try:
            if group is not None:
                group.check_commit(
                    member_id,
                    client.instance if member_id else None,
                    generation,
                    is_transactional=False,
                    version=9,
                )
            elif generation >= 0:
                return
            committed = Committed(offset, 0, "", self.shard.clock())
            pair = commit_pair(offset_keys(GROUP, "t")(partition), committed)
            self.state.commit(GROUP, [("t", partition, committed)], [pair])
        except Refusal as refusal:
            if refusal.code not in _MAY_BE:
                raise
        else:
            self.committed[partition] = offset

    @rule(ms=st.sampled_from([1, 2999, 3000, 9_000, 20_000, 300_000]))
    def waits(self, ms: int) -> None:
        self.loop.advance(ms)
        for each in self.clients.values():
            each.hear()

    @rule(names=st.sets(CLIENTS, min_size=1), protocols=PROTOCOLS)
    def get_along(self, names: set[str], protocols: tuple[str, ...]) -> None:
        """Some do all that it takes to be stable together; others may be in the way."""
        self.shard.fails = False
        for _ in range(2):  # the first time some are only told their ids
            for name in sorted(names):
                self.joins(name, protocols, 9)
        self.waits(3000)
        for _ in range(2):
            for name in sorted(names):
                self.syncs(name)

    @rule(names=st.sets(CLIENTS, min_size=1), steps=st.integers(1, 4))
    def go_on(self, names: set[str], steps: int) -> None:
        """Time passes, and some are heard of."""
        for _ in range(steps):
            self.waits(6_000)
            for name in sorted(names):
                self.beats(name)

    @precondition(lambda self: self.group is not None and self.group.phase is Phase.COMPLETING)
    @rule(name=CLIENTS)
    def loses_a_write(self, name: str) -> None:
        """What the leader assigns may be refused by the log."""
        self.shard.fails = True
        self.lost_a_write = True
        self.syncs(name)
        self.shard.fails = False

    @precondition(lambda self: self.batches)
    @rule()
    def restarts(self) -> None:
        self.state.close()
        self.loop.settle()
        for each in self.clients.values():
            each.hear()
            assert each.waiting is None, "somebody waits for a coordinator that is gone"
        self.state = started(self.loop, self.batches, self.config)
        self.generation = 0
        self.lost_a_write = False

    @invariant()
    def commits_are_kept(self) -> None:
        kept = self.state.offsets.of.get(GROUP, {}).get("t", {})
        assert {number: each.offset for number, each in kept.items()} == self.committed

    @invariant()
    def the_group_is_sound(self) -> None:
        group = self.group
        if group is None:
            self.generation = 0
            return
        members = group.members
        assert group.joining == sum(each.join is not None for each in members.values())
        assert group.static == {
            each.instance_id: each.member_id for each in members.values() if each.instance_id
        }
        assert group.leader in members if members else group.leader is None
        assert not group.pending & members.keys()
        assert group.unsynced <= members.keys()
        assert group.joining <= 3  # who has not joined again does not count
        match group.phase:
            case Phase.EMPTY:
                assert not members
            case Phase.STABLE:
                assert not any(each.sync or each.join for each in members.values())
            case Phase.COMPLETING:
                assert members
                assert not any(each.join for each in members.values())
            case Phase.PREPARING:
                assert not any(each.sync for each in members.values())
        if group.phase in (Phase.STABLE, Phase.COMPLETING):
            for each in members.values():
                assert each.metadata(group.protocol)
        assert group.generation >= self.generation
        self.generation = group.generation

    @invariant()
    def the_log_tells_the_same(self) -> None:
        group = self.group
        if self.lost_a_write or (group and group.phase in (Phase.PREPARING, Phase.COMPLETING)):
            return
        assert told(loaded_from(self.batches).state) == told(self.state)

    def teardown(self) -> None:
        """Without heartbeats everybody is gone in the end, and everybody has been told."""
        self.shard.fails = False
        self.loop.advance(3_600_000)
        group = self.group
        assert group is None or (group.phase is Phase.EMPTY and not group.members)
        for each in self.clients.values():
            each.hear()
            assert each.waiting is None, f"{each.name} waits for ever"
        self.state.close()
        self.loop.close()


async def _later(work: Any) -> Any:
    return work()


TestClassicGroup = ClassicGroupMachine.TestCase
TestClassicGroup.settings = settings(
    max_examples=rounds(60),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

"""Members of both protocols in one group, which goes up and down between them in any order: nobody
reads what somebody else reads, and in the end everything is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kraftline.broker.apis import join_group
from kraftline.broker.coordinators.groups.classic import leaving as classic_leaving
from kraftline.broker.coordinators.groups.classic import syncing as classic_syncing
from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.joining import Joiner
from kraftline.broker.coordinators.groups.consumer.group import STABLE, ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.led_group import LedGroup
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.leave_group import MemberIdentity
from kraftline.schema.coordinator.embedded import decode_assignment
from kraftline.schema.uuids import Uuid
from tests.broker.consumer_groups.clusters import Cluster
from tests.broker.consumer_groups.migration_stories import given, wanting
from tests.broker.consumer_groups.simulated import GROUP, Consumer, Coordinator
from tests.effort import rounds
from tests.groups.states import config_of
from tests.groups.telling import joining, syncing

PARTITIONS = 5
NEW = ("a", "b", "c")
OLD = ("x", "y")


class OldConsumer:
    """Of the classic protocol, and eager: it gives up everything before it joins. What it has is
    told it by SyncGroup; where the group is classic, one of them assigns."""

    def __init__(self, name: str, topic: Uuid) -> None:
        self.name = name
        self.topic = topic
        self.member_id = ""
        self.owned: set[tuple[Uuid, int]] = set()
        self.said: Any = None
        self.is_joining = False
        self.is_synced = False
        self.waiting: asyncio.Future[Any] | None = None

    @property
    def is_member(self) -> bool:
        return bool(self.member_id)

    def join(self, coordinator: Coordinator) -> None:
        self.owned = set()
        self.said = None
        self.is_joining = True
        request = joining(GROUP, self.member_id, protocols=wanting("t"), rebalance=60_000)
        joiner = Joiner(request, 9, self.name, "/127.0.0.1", 60_000)
        self._ask(coordinator, lambda: join_group._join(coordinator.state, joiner))

    def sync(self, coordinator: Coordinator) -> None:
        if self.said is None:
            return
        self.is_joining = False
        count = len(self.said.members)
        parts = [
            (each.member_id, given("t", *range(at, PARTITIONS, count)))
            for at, each in enumerate(self.said.members)
        ]
        request = syncing(GROUP, self.said, *parts)
        group = coordinator.state.groups.get(GROUP)
        if isinstance(group, ClassicGroup):
            classic = group
            self._ask(
                coordinator, lambda: classic_syncing.sync(coordinator.state, classic, request)
            )
        elif isinstance(group, LedGroup):
            led = group
            self._ask(coordinator, lambda: led.classic_sync(request))

    def beat(self, coordinator: Coordinator) -> None:
        if self.said is None:
            return
        request = HeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, generation_id=self.said.generation_id
        )
        group = coordinator.state.groups.get(GROUP)

        async def call() -> ErrorCode:
            if isinstance(group, ClassicGroup):
                return classic_syncing.heartbeat(coordinator.state, group, request)
            assert isinstance(group, LedGroup)
            return group.classic_heartbeat(request)

        try:
            error = coordinator.loop.run(call())
        except Refusal as refusal:
            error = refusal.code
            assert error in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
            if error == ErrorCode.UNKNOWN_MEMBER_ID:
                self.forget()
        if error != ErrorCode.NONE:
            self.join(coordinator)

    def leave(self, coordinator: Coordinator) -> None:
        who = [MemberIdentity(member_id=self.member_id)]
        group = coordinator.state.groups.get(GROUP)

        async def call() -> object:
            if isinstance(group, ClassicGroup):
                return classic_leaving.leave(coordinator.state, group, who)
            assert isinstance(group, LedGroup)
            return group.classic_leave(who)

        coordinator.loop.run(call())
        self.forget()

    def forget(self) -> None:
        self.member_id = ""
        self.owned = set()
        self.said = None

    def hear(self) -> None:
        future = self.waiting
        if future is not None and future.done():
            self.waiting = None
            self._told(future.result())

    def _ask(self, coordinator: Coordinator, work: Any) -> None:
        async def call() -> Any:
            try:
                told = work()
                if asyncio.isfuture(told):
                    self.waiting = told
                    return None
                return await told if isinstance(told, Awaitable) else told
            except Refusal as refusal:
                return refusal.code

        answer = coordinator.loop.run(call())
        if isinstance(answer, ErrorCode):
            self._failed(answer)
        elif answer is not None:
            self._told(answer)

    def _told(self, answer: Any) -> None:
        if answer.error_code != ErrorCode.NONE:
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            self._failed(answer.error_code)
        elif self.is_joining:
            self.member_id = answer.member_id
            self.said = answer
            self.is_synced = False
        else:
            self.is_synced = True
            assigned, _ = decode_assignment(answer.assignment)
            self.owned = {
                (self.topic, number)
                for each in assigned.assigned_partitions
                for number in each.partitions
            }

    def _failed(self, error: int) -> None:
        self.said = None
        self.owned = set()
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""


class MixedGroupMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        cluster = Cluster()
        topic = cluster.topic("t", PARTITIONS)
        config = config_of(
            group_consumer_assignment_interval_ms=0, group_initial_rebalance_delay_ms=0
        )
        self.coordinator = Coordinator(config, cluster)
        self.new = {name: Consumer(name) for name in NEW}
        self.old = {name: OldConsumer(name, topic) for name in OLD}

    @property
    def everybody(self) -> list[Consumer | OldConsumer]:
        return [*self.new.values(), *self.old.values()]

    def hear(self) -> None:
        self.coordinator.pass_time(10)
        for each in self.old.values():
            each.hear()

    @rule(name=st.sampled_from(NEW))
    def a_new_one_joins(self, name: str) -> None:
        if not self.new[name].is_member:
            self.new[name].join(self.coordinator, ("t",), None)
        self.hear()

    @rule(name=st.sampled_from(NEW), lets_go=st.booleans())
    def a_new_one_lives(self, name: str, lets_go: bool) -> None:
        consumer = self.new[name]
        if consumer.is_member:
            if lets_go:
                consumer.let_go()
            consumer.beat(self.coordinator, says_all=False, loses_answer=False)
        self.hear()

    @rule(name=st.sampled_from(NEW))
    def a_new_one_leaves(self, name: str) -> None:
        if self.new[name].is_member:
            self.new[name].leave(self.coordinator)
        self.hear()

    @rule(name=st.sampled_from(OLD))
    def an_old_one_joins(self, name: str) -> None:
        if self.old[name].waiting is None:
            self.old[name].join(self.coordinator)
        self.hear()

    @rule(name=st.sampled_from(OLD))
    def an_old_one_syncs(self, name: str) -> None:
        if self.old[name].waiting is None:
            self.old[name].sync(self.coordinator)
        self.hear()

    @rule(name=st.sampled_from(OLD))
    def an_old_one_lives(self, name: str) -> None:
        if self.old[name].waiting is None:
            self.old[name].beat(self.coordinator)
        self.hear()

    @rule(name=st.sampled_from(OLD))
    def an_old_one_leaves(self, name: str) -> None:
        old = self.old[name]
        if old.waiting is None and old.said is not None:
            old.leave(self.coordinator)
        self.hear()

    @invariant()
    def nobody_reads_what_somebody_else_reads(self) -> None:
        if not hasattr(self, "coordinator"):
            return
        read: dict[tuple[Uuid, int], str] = {}
        for consumer in self.everybody:
            for each in consumer.owned:
                assert each not in read, (each, read[each], consumer.name)
                read[each] = consumer.name

    @invariant()
    def the_log_tells_the_same(self) -> None:
        if not hasattr(self, "coordinator"):
            return
        live, read = (
            state.groups.get(GROUP) for state in (self.coordinator.state, self.coordinator.reread())
        )
        if isinstance(live, ConsumerGroup):
            assert isinstance(read, ConsumerGroup)
            assert live.members == read.members
            assert live.targets == read.targets

    def teardown(self) -> None:
        if hasattr(self, "coordinator"):
            try:
                self._comes_to_rest()
            finally:
                self.coordinator.close()

    def _comes_to_rest(self) -> None:
        for _ in range(15):
            for new in self.new.values():
                if new.is_member:
                    new.let_go()
                    new.beat(self.coordinator, says_all=False, loses_answer=False)
            for old in self.old.values():
                if old.waiting is None and old.is_member:
                    if old.said is None:
                        old.join(self.coordinator)
                    elif old.is_synced:
                        old.beat(self.coordinator)
                    else:
                        old.sync(self.coordinator)
                self.hear()
            self.nobody_reads_what_somebody_else_reads()
        group = self.coordinator.state.groups.get(GROUP)
        if not any(each.is_member for each in self.everybody):
            return
        if isinstance(group, ClassicGroup):
            assert group.phase is Phase.STABLE
        else:
            assert group is not None
            assert group.state == STABLE
        assert len(set().union(*(each.owned for each in self.everybody))) == PARTITIONS


TestMixedGroup = MixedGroupMachine.TestCase
TestMixedGroup.settings = settings(
    max_examples=rounds(50),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

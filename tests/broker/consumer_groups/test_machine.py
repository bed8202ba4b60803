"""Any order of joins, heartbeats, lost answers, leaves, pauses, changes of topics and restarts: no
partition has two members, epochs never go back, the log tells the same as the state, and the group
comes to rest with everything assigned."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kraftline.broker.coordinators.groups.consumer.group import STABLE, ConsumerGroup
from kraftline.broker.coordinators.groups.state import GroupsState
from tests.broker.consumer_groups.clusters import Cluster
from tests.broker.consumer_groups.simulated import GROUP, Consumer, Coordinator
from tests.effort import rounds
from tests.groups.states import config_of

NAMES = ("a", "b", "c", "d", "e")
TOPICS = ("t", "u", "later")
CONSUMERS = st.sampled_from(NAMES)
WANTED = st.sampled_from([("t",), ("t", "u"), ("t", "u", "later"), ("later",), ()])
REGEX = st.sampled_from([None, None, "t|u", ".*"])


_ROOM = 4  # for so many members


class ConsumerGroupMachine(RuleBasedStateMachine):
    @initialize(
        assignor=st.sampled_from(["uniform", "range"]),
        interval=st.sampled_from([0, 1000]),
        in_threads=st.booleans(),
    )
    def begin(self, assignor: str, interval: int, in_threads: bool) -> None:
        self.cluster = Cluster()
        self.cluster.topic("t", 4)
        self.cluster.topic("u", 3)
        config = config_of(
            group_consumer_assignors=assignor,
            group_consumer_assignment_interval_ms=interval,
            group_consumer_max_size=_ROOM,
            offsets_retention_minutes=100000,
        )
        self.coordinator = Coordinator(config, self.cluster)
        if in_threads:  # as for large groups
            self.coordinator.settings.assigns_at_once = 0
        self.consumers = {
            name: Consumer(name, f"instance-{name}" if name in "de" else None) for name in NAMES
        }
        self.epochs: tuple[int, int] = (0, 0)
        self.member_epochs: dict[str, int] = {}

    @property
    def group(self) -> ConsumerGroup | None:
        return self.coordinator.group

    @rule(name=CONSUMERS, topics=WANTED, regex=REGEX)
    def joins(self, name: str, topics: tuple[str, ...], regex: str | None) -> None:
        consumer = self.consumers[name]
        if consumer.instance is not None and consumer.is_member:
            return  # a process that lives does not start again
        consumer.join(self.coordinator, topics, regex)

    @rule(name=CONSUMERS, says_all=st.booleans(), loses_answer=st.booleans())
    def beats(self, name: str, says_all: bool, loses_answer: bool) -> None:
        consumer = self.consumers[name]
        if consumer.is_member:
            consumer.beat(self.coordinator, says_all=says_all, loses_answer=loses_answer)

    @rule(name=CONSUMERS)
    def lets_go(self, name: str) -> None:
        self.consumers[name].let_go()

    @rule(name=CONSUMERS, is_away=st.booleans())
    def leaves(self, name: str, is_away: bool) -> None:
        consumer = self.consumers[name]
        if consumer.is_member and not self.coordinator.shard.fails:
            epoch = -2 if is_away and consumer.instance is not None else -1
            consumer.leave(self.coordinator, epoch)

    @rule(ms=st.sampled_from([1, 1000, 11_000, 44_000, 50_000]))
    def waits(self, ms: int) -> None:
        self.coordinator.pass_time(ms)

    @rule(name=st.sampled_from(TOPICS))
    def changes_a_topic(self, name: str) -> None:
        known = self.cluster.image.topics.named(name)
        if known is None:
            self.cluster.topic(name, 2)
        elif len(known.partitions) < 6:
            self.cluster.grow(name, len(known.partitions) + 1)
        else:
            self.cluster.remove(name)
        self.coordinator.metadata_changed()

    @rule()
    def writes_fail_or_work_again(self) -> None:
        self.coordinator.shard.fails = not self.coordinator.shard.fails

    @precondition(lambda self: not self.coordinator.shard.fails)
    @rule()
    def restarts(self) -> None:
        self.coordinator.restart()

    @invariant()
    def no_partition_has_two_members(self) -> None:
        if not hasattr(self, "coordinator") or self.group is None:
            return
        owners: dict[Any, str] = {}
        for member in self.group.members.values():
            for owned in (member.assigned, member.revoking):
                for topic, partitions in owned.items():
                    for partition in partitions:
                        assert (topic, partition) not in owners, (member.member_id, owners)
                        owners[topic, partition] = member.member_id
        for consumer in self.consumers.values():
            if not consumer.is_member or consumer.member_id not in self.group.members:
                continue  # nothing was heard of it in time; it will hear of that
            for each in consumer.owned:
                assert owners.get(each) == consumer.member_id

    @invariant()
    def epochs_never_go_back(self) -> None:
        if not hasattr(self, "coordinator") or self.group is None:
            return
        group = self.group
        before, self.epochs = self.epochs, (group.epoch, group.assignment_epoch)
        assert group.epoch >= before[0]
        assert group.assignment_epoch >= before[1]
        assert group.assignment_epoch <= group.epoch
        for member in group.members.values():
            assert member.epoch <= group.assignment_epoch
            if member.epoch >= 0:
                assert member.epoch >= self.member_epochs.get(member.member_id, 0)
                self.member_epochs[member.member_id] = member.epoch
        self.member_epochs = {
            id: epoch for id, epoch in self.member_epochs.items() if id in group.members
        }

    @invariant()
    def the_log_tells_the_same(self) -> None:
        if hasattr(self, "coordinator"):
            assert told(self.coordinator.reread()) == told(self.coordinator.state)

    def teardown(self) -> None:
        if hasattr(self, "coordinator"):
            try:
                self._comes_to_rest()
            finally:
                self.coordinator.close()

    def _comes_to_rest(self) -> None:
        self.coordinator.shard.fails = False
        for _ in range(12):
            for consumer in self.consumers.values():
                if consumer.is_member:
                    consumer.let_go()
                    consumer.beat(self.coordinator, says_all=True, loses_answer=False)
            self.coordinator.pass_time(11_000)
        self._is_at_rest()
        self.coordinator.pass_time(3_600_000)
        assert self.group is None or not self.group.members

    def _is_at_rest(self) -> None:
        group = self.group
        if group is None or not group.members:
            return
        assert group.state == STABLE
        owned = set()
        for consumer in self.consumers.values():
            if consumer.is_member and consumer.member_id not in group.members:
                # It was gone for too long, and hears of nothing else while there is no room.
                assert len(group.members) == _ROOM
            elif consumer.is_member:
                member = group.members[consumer.member_id]
                target = {
                    (t, p) for t, each in group.target(member.member_id).items() for p in each
                }
                assert consumer.owned == target
                owned |= target
        topics = self.cluster.image.topics
        assert owned == {
            (topic.id, number)
            for name in group.subscriptions.topics
            if (topic := topics.named(name)) is not None
            for number in range(len(topic.partitions))
        }


def told(state: GroupsState) -> object:
    """All that is kept of the group."""
    group = state.groups.get(GROUP)
    if not isinstance(group, ConsumerGroup):
        return None
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assigned_at,
        group.members,
        group.statics,
        group.targets,
        group.taken,
        group.partition_epochs,
        group.subscriptions.topics,
        group.subscriptions.regexes,
        group.resolved,
    )


TestConsumerGroup = ConsumerGroupMachine.TestCase
TestConsumerGroup.settings = settings(
    max_examples=rounds(50),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

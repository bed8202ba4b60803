"""Members that are silent, slow or too many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.joining import Joiner
from kraftline.broker.coordinators.groups.consumer.led_group import LedGroup
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.sync_group import SyncGroupRequest
from kraftline.schema.uuids import Uuid
from tests.broker.consumer_groups.clusters import Cluster
from tests.broker.consumer_groups.simulated import GROUP, Coordinator
from tests.broker.consumer_groups.telling import alive, join, leave
from tests.groups.states import config_of
from tests.groups.telling import joining, subscription

SESSION_MS = 45_000
REBALANCE_MS = 30_000


class Setting:
    def __init__(self, **settings: object) -> None:
        cluster = Cluster()
        self.topic: Uuid = cluster.topic("t", 4)
        config = config_of(group_consumer_assignment_interval_ms=0, **settings)
        self.coordinator = Coordinator(config, cluster)

    @property
    def group(self) -> LedGroup:
        group = self.coordinator.group
        assert isinstance(group, LedGroup)
        return group

    def classic_join(self, member_id: str) -> Any:
        protocols = (("range", subscription("t")),)
        request = joining(GROUP, member_id, protocols=protocols, session=10_000, rebalance=20_000)
        joiner = Joiner(request, 9, "old", "/127.0.0.1", 20_000)
        return self.ran(lambda: self.group.classic_join(joiner))

    def ran(self, work: Any) -> Any:
        async def call() -> Any:
            return work()

        return self.coordinator.loop.run(call())


@pytest.fixture
def setting() -> Iterator[Setting]:
    made = Setting()
    yield made
    made.coordinator.close()


def test_who_is_silent_for_a_session_is_put_out(setting: Setting) -> None:
    ask = setting.coordinator.ask
    ask(join(GROUP, "a", "t"))
    ask(join(GROUP, "b", "t"))
    setting.coordinator.pass_time(SESSION_MS - 1)
    ask(alive(GROUP, "b", 3))
    setting.coordinator.pass_time(1)
    assert list(setting.group.members) == ["b"]
    answer = ask(alive(GROUP, "b", 3))
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions[0].partitions == (0, 1, 2, 3)
    with pytest.raises(Refusal, match=r"Member a is not a member of group g\."):
        ask(alive(GROUP, "a", 2))


def test_after_a_restart_members_have_one_session(setting: Setting) -> None:
    ask = setting.coordinator.ask
    ask(join(GROUP, "a", "t"))
    setting.coordinator.pass_time(SESSION_MS - 1)
    setting.coordinator.restart()
    setting.coordinator.pass_time(SESSION_MS - 1)
    assert list(setting.group.members) == ["a"]
    setting.coordinator.pass_time(1)
    assert not setting.group.members
    assert setting.group.state == "Empty"


@pytest.mark.parametrize("restarts", [False, True])
def test_who_does_not_give_partitions_up_in_time_is_put_out(
    setting: Setting, restarts: bool
) -> None:
    ask = setting.coordinator.ask
    ask(join(GROUP, "a", "t"))
    ask(join(GROUP, "b", "t"))
    ask(alive(GROUP, "a", 2))
    if restarts:
        setting.coordinator.restart()
    for _ in range(3):
        setting.coordinator.pass_time(REBALANCE_MS // 3 - 1)
        ask(alive(GROUP, "a", 2))
        ask(alive(GROUP, "b", 3))
    setting.coordinator.pass_time(3)
    assert list(setting.group.members) == ["b"]


def test_who_gives_them_up_in_time_stays(setting: Setting) -> None:
    ask = setting.coordinator.ask
    ask(join(GROUP, "a", "t"))
    ask(join(GROUP, "b", "t"))
    ask(alive(GROUP, "a", 2))
    ask(alive(GROUP, "a", 2, ((setting.topic, (0, 1)),)))
    setting.coordinator.pass_time(REBALANCE_MS + 1)
    assert list(setting.group.members) == ["a", "b"]


def test_a_static_member_that_stays_away_is_put_out(setting: Setting) -> None:
    ask = setting.coordinator.ask
    ask(join(GROUP, "a", "t", instance_id="i"))
    ask(leave(GROUP, "a", "i", -2))
    setting.coordinator.pass_time(SESSION_MS - 1)
    assert list(setting.group.members) == ["a"]
    setting.coordinator.pass_time(1)
    assert not setting.group.members


def test_who_cannot_be_put_out_is_put_out_later(setting: Setting) -> None:
    setting.coordinator.ask(join(GROUP, "a", "t"))
    setting.coordinator.shard.fails = True
    setting.coordinator.pass_time(SESSION_MS + 10_000)
    assert list(setting.group.members) == ["a"]
    setting.coordinator.shard.fails = False
    setting.coordinator.pass_time(500)
    assert not setting.group.members


def test_a_group_that_is_full_takes_nobody_more() -> None:
    setting = Setting(group_consumer_max_size=1)
    ask = setting.coordinator.ask
    ask(join(GROUP, "a", "t"))
    with pytest.raises(Refusal) as found:
        ask(join(GROUP, "b", "t"))
    assert found.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert found.value.message == (
        "The consumer group has reached its maximum capacity of 1 members."
    )
    ask(join(GROUP, "a", "t"))
    setting.coordinator.close()


def test_a_classic_member_has_to_sync_join_and_live_in_time(setting: Setting) -> None:
    ask = setting.coordinator.ask
    ask(join(GROUP, "a", "t"))
    told = setting.classic_join("old-1")
    assert told.error_code == ErrorCode.NONE

    def lives(ms: int) -> None:
        """Both send heartbeats meanwhile."""
        beat = HeartbeatRequest(group_id=GROUP, member_id="old-1", generation_id=told.generation_id)
        for _ in range(ms // 5000):
            setting.coordinator.pass_time(5000)
            ask(alive(GROUP, "a", 3, ((setting.topic, (0, 1)),)))
            if "old-1" in setting.group.members:
                setting.ran(lambda: setting.group.classic_heartbeat(beat))

    ask(alive(GROUP, "a", 2))
    ask(alive(GROUP, "a", 2, ((setting.topic, (0, 1)),)))
    lives(15_000)
    assert "old-1" in setting.group.members
    lives(5000)
    assert "old-1" not in setting.group.members, "it did not sync"
    told = setting.classic_join("old-2")
    sync = SyncGroupRequest(
        group_id=GROUP,
        member_id="old-2",
        generation_id=told.generation_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    assert setting.ran(lambda: setting.group.classic_sync(sync)).error_code == ErrorCode.NONE
    setting.coordinator.pass_time(9_999)
    assert "old-2" in setting.group.members
    setting.coordinator.pass_time(1)
    assert "old-2" not in setting.group.members, "nothing was heard of it"


def test_the_last_of_the_new_protocol_leaves_a_classic_group_behind(setting: Setting) -> None:
    setting.coordinator.ask(join(GROUP, "a", "t"))
    setting.classic_join("old-1")
    setting.coordinator.pass_time(0)
    setting.coordinator.ask(leave(GROUP, "a"))
    group = setting.coordinator.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.phase is Phase.PREPARING
    # The deadlines that it had in the consumer group are over with it.
    setting.coordinator.pass_time(9_999)
    assert list(group.members) == ["old-1"]
    setting.coordinator.pass_time(10_001)
    assert not group.members

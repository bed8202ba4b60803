"""Which sessions there are and which make room: Kafka's rules, with a clock of our own."""

from __future__ import annotations

from kraftline.broker.fetch_sessions import NO_SESSION, FetchSessions
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

MINUTE = 60_000


class Sessions(FetchSessions):
    def __init__(self, slots: int) -> None:
        self.now = 0
        super().__init__(slots, lambda: self.now)

    def begin(self, size: int = 1, *, is_replica: bool = False) -> int:
        """The id of a new session with so many partitions."""
        partitions = tuple(FetchPartition(partition=n) for n in range(size))
        request = FetchRequest(
            session_epoch=0, topics=(FetchTopic(topic="t", partitions=partitions),)
        )
        plan = self.plan(request, 12)
        found = {key: PartitionData(high_watermark=0) for key in plan.wanted}
        _, id, _ = self.told(plan, found, 12, is_replica)
        return id

    def go_on(self, id: int, epoch: int = 1) -> int:
        """The error."""
        return self.plan(FetchRequest(session_id=id, session_epoch=epoch), 12).error

    def has(self, id: int) -> bool:
        return self.go_on(id, 2**30) == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_new_session_gets_none_while_all_others_are_young() -> None:
    sessions = Sessions(2)
    first, second = sessions.begin(), sessions.begin()
    assert NO_SESSION not in (first, second)
    assert sessions.begin(100) == NO_SESSION
    assert sessions.has(first)
    assert sessions.has(second)


def test_one_that_nobody_used_for_two_minutes_makes_room() -> None:
    sessions = Sessions(2)
    first, second = sessions.begin(), sessions.begin()
    sessions.now = MINUTE
    assert sessions.go_on(first) == ErrorCode.NONE
    sessions.now = 2 * MINUTE
    assert sessions.begin() == NO_SESSION  # exactly two minutes are not more than that
    sessions.now += 1
    assert sessions.begin() != NO_SESSION
    assert sessions.has(first)
    assert not sessions.has(second)


def test_an_old_one_makes_room_for_one_that_is_as_large() -> None:
    sessions = Sessions(2)
    small, large = sessions.begin(2), sessions.begin(5)
    for minute, epoch in ((1, 1), (2, 2), (3, 3)):
        sessions.now = minute * MINUTE
        assert sessions.go_on(small, epoch) == ErrorCode.NONE
        assert sessions.go_on(large, epoch) == ErrorCode.NONE
    assert sessions.begin(1) == NO_SESSION
    assert sessions.has(small)
    assert sessions.begin(3) != NO_SESSION
    assert not sessions.has(small)
    assert sessions.has(large)


def test_a_replica_takes_a_young_clients_place_and_not_another_replicas() -> None:
    sessions = Sessions(2)
    client = sessions.begin(9)
    replica = sessions.begin(1, is_replica=True)
    assert sessions.begin(50) == NO_SESSION
    other = sessions.begin(1, is_replica=True)
    assert other != NO_SESSION
    assert not sessions.has(client)
    assert sessions.has(replica)
    assert sessions.begin(50, is_replica=True) == NO_SESSION


def test_without_slots_there_are_no_sessions() -> None:
    sessions = Sessions(0)
    assert sessions.begin() == NO_SESSION
    assert len(sessions) == 0


def test_epochs_begin_again_at_1() -> None:
    sessions = Sessions(1)
    id = sessions.begin()
    assert sessions.go_on(id, 1) == ErrorCode.NONE
    sessions._sessions[id].epoch = 2**31 - 1
    assert sessions.go_on(id, 2**31 - 1) == ErrorCode.NONE
    assert sessions.go_on(id, 1) == ErrorCode.NONE

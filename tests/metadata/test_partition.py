"""What a PartitionChange does to a partition, and what it must not."""

from __future__ import annotations

import msgspec
import pytest

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.partition import (
    LOST,
    MIGRATING,
    RECOVERING,
    UNASSIGNED,
    PartitionRegistration,
    Unusual,
    from_record,
)
from kraftline.schema.metadata import PartitionChangeRecord, PartitionRecord
from kraftline.schema.uuids import Uuid

A, B, C = (Uuid(bytes([n]) * 16) for n in (1, 2, 3))

BEFORE = PartitionRegistration(
    replicas=(1, 2, 3),
    directories=(A, B, C),
    isr=(1, 2),
    leader=1,
    leader_epoch=5,
    partition_epoch=8,
    unusual=Unusual(removing_replicas=(3,), adding_replicas=(2,), elr=(3,), last_known_elr=(2,)),
)


def test_empty_change_raises_the_partition_epoch_and_nothing_else() -> None:
    after = BEFORE.merge(PartitionChangeRecord(partition_id=0))
    assert after == msgspec.structs.replace(BEFORE, partition_epoch=9)


@pytest.mark.parametrize("leader", [1, 2, -1])
def test_any_named_leader_raises_the_leader_epoch(leader: int) -> None:
    """Also the one that leads already, and "none"."""
    after = BEFORE.merge(PartitionChangeRecord(leader=leader))
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (leader, 6, 9)


def test_leader_minus_two_keeps_leader_and_epoch() -> None:
    after = BEFORE.merge(PartitionChangeRecord(leader=-2, isr=(1,)))
    assert (after.leader, after.leader_epoch, after.isr) == (1, 5, (1,))


def test_null_is_unchanged_and_empty_is_empty() -> None:
    change = PartitionChangeRecord(
        isr=(), removing_replicas=(), adding_replicas=(), eligible_leader_replicas=()
    )
    after = BEFORE.merge(change)
    assert (after.isr, after.removing_replicas, after.adding_replicas, after.elr) == ((),) * 4
    assert after.last_known_elr == (2,)
    assert after.replicas == (1, 2, 3)


def test_recovery_state_changes_only_when_named() -> None:
    recovering = BEFORE.merge(PartitionChangeRecord(leader_recovery_state=1))
    assert recovering.leader_recovery_state == RECOVERING
    assert recovering.merge(PartitionChangeRecord()).leader_recovery_state == RECOVERING
    assert recovering.merge(PartitionChangeRecord(leader_recovery_state=0)) != recovering
    with pytest.raises(ReplayError, match="Value 2 is not a valid leader recovery state"):
        BEFORE.merge(PartitionChangeRecord(leader_recovery_state=2))


def test_directories_that_are_all_migrating_follow_the_replicas() -> None:
    before = from_record(PartitionRecord(partition_id=0, replicas=(1, 2), isr=(1,)))
    assert before.directories == (MIGRATING, MIGRATING)
    after = before.merge(PartitionChangeRecord(replicas=(1, 2, 3)))
    assert after.directories == (MIGRATING,) * 3
    after = BEFORE.merge(PartitionChangeRecord(directories=()))
    assert after.directories == (MIGRATING,) * 3


def test_replicas_without_their_directories_are_refused() -> None:
    with pytest.raises(ReplayError, match="lengths for replicas and directories do not match"):
        BEFORE.merge(PartitionChangeRecord(replicas=(1, 2)))
    with pytest.raises(ReplayError, match="lengths for replicas and directories do not match"):
        BEFORE.merge(PartitionChangeRecord(replicas=(1, 2), directories=(A, B, C)))
    with pytest.raises(ReplayError, match="lengths for replicas and directories do not match"):
        from_record(PartitionRecord(replicas=(1,), isr=(1,), directories=(A, B)))
    # A list seen before takes another way to the same refusal.
    from_record(PartitionRecord(replicas=(1, 2), isr=(1,), directories=(A, B)))
    with pytest.raises(ReplayError, match="lengths for replicas and directories do not match"):
        from_record(PartitionRecord(replicas=(1,), isr=(1,), directories=(A, B)))


def test_lists_of_old_records_are_empty() -> None:
    found = from_record(PartitionRecord(replicas=(1,), isr=(1,), leader=1))
    assert (found.elr, found.last_known_elr) == ((), ())


def test_equal_lists_are_one_object() -> None:
    one, other = (
        from_record(
            PartitionRecord(replicas=(7, 8, n), isr=(n - 2, 8, n), directories=(A, B, UNASSIGNED))
        )
        for n in (9, 9)
    )
    assert one.replicas is other.replicas is one.isr is other.isr
    assert one.directories is other.directories
    change = PartitionChangeRecord(isr=tuple(range(7, 10)))
    assert one.merge(change).isr is one.isr


def test_directory_of_a_replica() -> None:
    assert BEFORE.directory(2) == B
    assert BEFORE.directory(9) is None
    assert BEFORE.has_preferred_leader
    assert not BEFORE.merge(PartitionChangeRecord(leader=2)).has_preferred_leader


def test_reserved_directories_print_as_kafka_prints_them() -> None:
    assert str(MIGRATING) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert str(UNASSIGNED) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert str(LOST) == "AAAAAAAAAAAAAAAAAAAAAg"

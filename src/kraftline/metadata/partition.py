"""A partition as an image has it: built from a PartitionRecord, moved on by changes.

Millions of these are alive at once, and most lists in them are the same few: equal lists are
one object. Partitions never hold another mutable thing, so the collector need not see them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.uuids import Uuid

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
_NO_STATE_CHANGE: Final = -1

# What stands for a replica's directory while it is not known; ids below 100 are reserved.
MIGRATING = Uuid(bytes(16))
UNASSIGNED = Uuid(bytes(15) + b"\1")
LOST = Uuid(bytes(15) + b"\2")

Replicas = tuple[int, ...]
Directories = tuple[Uuid, ...]

# Lists in use, by their value. Emptied when it grows past what even a large cluster has: lists
# made before then stay as they are and are merely not shared with later ones.
_LIMIT = 500_000
_replicas: dict[Replicas, Replicas] = {}
_directories: dict[Directories, Directories] = {}
_directory: dict[Uuid, Uuid] = {}


class Unusual(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """What few partitions have anything of, and most share the one that has nothing."""

    leader_recovery_state: int = RECOVERED
    removing_replicas: Replicas = ()
    adding_replicas: Replicas = ()
    elr: Replicas = ()
    last_known_elr: Replicas = ()


USUAL: Final = Unusual()


class PartitionRegistration(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """One partition. `directories` has one entry for each replica, in the same order."""

    replicas: Replicas
    directories: Directories
    isr: Replicas
    leader: int
    leader_epoch: int
    partition_epoch: int
    unusual: Unusual = USUAL

    @property
    def leader_recovery_state(self) -> int:
        return self.unusual.leader_recovery_state

    @property
    def removing_replicas(self) -> Replicas:
        return self.unusual.removing_replicas

    @property
    def adding_replicas(self) -> Replicas:
        return self.unusual.adding_replicas

    @property
    def elr(self) -> Replicas:
        return self.unusual.elr

    @property
    def last_known_elr(self) -> Replicas:
        return self.unusual.last_known_elr

    @property
    def has_preferred_leader(self) -> bool:
        return self.leader == (self.replicas[0] if self.replicas else NO_LEADER)

    def directory(self, replica: int) -> Uuid | None:
        """Where a broker keeps its replica; None if it has none."""
        if replica in self.replicas:
            return self.directories[self.replicas.index(replica)]
        return None

    def merge(self, change: PartitionChangeRecord) -> PartitionRegistration:
        """What the partition is after a change: null means unchanged, and so does leader -2.

        The partition epoch always rises, the leader epoch with any named leader, be it the same.
        """
        replicas, directories = self.replicas, self.directories
        if change.replicas is not None or change.directories is not None:
            replicas, directories = _moved(self, change)
        leader, leader_epoch = change.leader, self.leader_epoch + 1
        if leader == NO_LEADER_CHANGE:
            leader, leader_epoch = self.leader, leader_epoch - 1
        unusual = self.unusual
        if (
            change.leader_recovery_state != _NO_STATE_CHANGE
            or change.removing_replicas is not None
            or change.adding_replicas is not None
            or change.eligible_leader_replicas is not None
            or change.last_known_elr is not None
        ):
            unusual = _merged(unusual, change)
        isr = change.isr
        return PartitionRegistration(
            replicas,
            directories,
            self.isr if isr is None else shared(isr),
            leader,
            leader_epoch,
            self.partition_epoch + 1,
            unusual,
        )

    def without_elr(self) -> PartitionRegistration:
        """Both lists emptied, which is a change like any other."""
        before = self.unusual
        unusual = unusually(
            before.leader_recovery_state, before.removing_replicas, before.adding_replicas
        )
        return msgspec.structs.replace(
            self, unusual=unusual, partition_epoch=self.partition_epoch + 1
        )

    def to_record(self, topic_id: Uuid, partition: int, options: WriteOptions) -> PartitionRecord:
        elr = options.writes_elr
        return PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=self.replicas,
            isr=self.isr,
            removing_replicas=self.removing_replicas,
            adding_replicas=self.adding_replicas,
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=(
                self.directories if options.version.directory_assignment_supported else ()
            ),
            eligible_leader_replicas=self.elr or None if elr else None,
            last_known_elr=self.last_known_elr or None if elr else None,
        )


def from_record(record: PartitionRecord) -> PartitionRegistration:
    """A partition as a record says it whole. Lists that older versions lack are empty."""
    state = record.leader_recovery_state
    if state != RECOVERED and state != RECOVERING:
        raise ReplayError(f"Value {state} is not a valid leader recovery state", record=record)
    replicas = record.replicas
    isr = record.isr
    found = _replicas.get(replicas)
    replicas = shared(replicas) if found is None else found
    directories = _directories.get(record.directories)
    if directories is None:
        if record.directories and len(record.directories) != len(replicas):
            raise _lengths(record)
        directories = _checked(record.directories, replicas, record)
    elif len(directories) != len(replicas):
        raise _lengths(record)
    removing, adding = record.removing_replicas, record.adding_replicas
    elr, last_known = record.eligible_leader_replicas, record.last_known_elr
    unusual = USUAL
    if state or removing or adding or elr or last_known:
        unusual = unusually(state, removing, adding, elr or (), last_known or ())
    return PartitionRegistration(
        replicas,
        directories,
        replicas if isr is record.replicas or isr == replicas else shared(isr),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        unusual,
    )


def unusually(
    leader_recovery_state: int = RECOVERED,
    removing: Replicas = (),
    adding: Replicas = (),
    elr: Replicas = (),
    last_known_elr: Replicas = (),
) -> Unusual:
    """The one object where there is nothing unusual."""
    lists = (removing, adding, elr, last_known_elr)
    if leader_recovery_state == RECOVERED and not any(lists):
        return USUAL
    return Unusual(leader_recovery_state, *map(shared, lists))


def _merged(before: Unusual, change: PartitionChangeRecord) -> Unusual:
    state = change.leader_recovery_state
    if state == _NO_STATE_CHANGE:
        state = before.leader_recovery_state
    elif state != RECOVERED and state != RECOVERING:
        raise ReplayError(f"Value {state} is not a valid leader recovery state", record=change)
    removing, adding = change.removing_replicas, change.adding_replicas
    elr, last_known = change.eligible_leader_replicas, change.last_known_elr
    return unusually(
        state,
        before.removing_replicas if removing is None else removing,
        before.adding_replicas if adding is None else adding,
        before.elr if elr is None else elr,
        before.last_known_elr if last_known is None else last_known,
    )


def shared(replicas: Replicas) -> Replicas:
    """The one object for a list of brokers."""
    if len(_replicas) > _LIMIT:
        _replicas.clear()
    return _replicas.setdefault(replicas, replicas)


@cache
def migrating(count: int) -> Directories:
    """Directories that nothing is known of yet."""
    return (MIGRATING,) * count


def _moved(
    before: PartitionRegistration, change: PartitionChangeRecord
) -> tuple[Replicas, Directories]:
    replicas, directories = before.replicas, before.directories
    if change.replicas is not None:
        replicas = shared(change.replicas)
    if change.directories is not None:
        directories = change.directories
        if change.replicas is not None and directories and len(directories) != len(replicas):
            raise _lengths(change)
    return replicas, _checked(directories, replicas, change)


def _checked(
    directories: Directories, replicas: Replicas, record: PartitionRecord | PartitionChangeRecord
) -> Directories:
    if directories.count(MIGRATING) == len(directories):
        return migrating(len(replicas))
    if len(directories) != len(replicas):
        raise ReplayError("The lengths for replicas and directories do not match.", record=record)
    found = _directories.get(directories)
    if found is None:
        if len(_directories) > _LIMIT:
            _directories.clear()
            _directory.clear()
        found = tuple([_directory.setdefault(each, each) for each in directories])
        _directories[found] = found
    return found


def _lengths(record: PartitionRecord | PartitionChangeRecord) -> ReplayError:
    return ReplayError(
        "The lengths for replicas and directories do not match: "
        f"{len(record.replicas or ())} and {len(record.directories or ())}",
        record=record,
    )

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


class PartitionRegistration(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """One partition. `directories` has one entry for each replica, in the same order."""

    replicas: Replicas
    directories: Directories
    isr: Replicas
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = RECOVERED
    removing_replicas: Replicas = ()
    adding_replicas: Replicas = ()
    elr: Replicas = ()
    last_known_elr: Replicas = ()

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
        state = change.leader_recovery_state
        if state == _NO_STATE_CHANGE:
            state = self.leader_recovery_state
        elif state != RECOVERED and state != RECOVERING:
            raise ReplayError(f"Value {state} is not a valid leader recovery state", record=change)
        isr, removing, adding = change.isr, change.removing_replicas, change.adding_replicas
        elr, last_known = change.eligible_leader_replicas, change.last_known_elr
        return PartitionRegistration(
            replicas,
            directories,
            self.isr if isr is None else shared(isr),
            leader,
            leader_epoch,
            self.partition_epoch + 1,
            state,
            self.removing_replicas if removing is None else shared(removing),
            self.adding_replicas if adding is None else shared(adding),
            self.elr if elr is None else shared(elr),
            self.last_known_elr if last_known is None else shared(last_known),
        )

    def without_elr(self) -> PartitionRegistration:
        """Both lists emptied, which is a change like any other."""
        return msgspec.structs.replace(
            self, elr=(), last_known_elr=(), partition_epoch=self.partition_epoch + 1
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
    return PartitionRegistration(
        replicas,
        directories,
        replicas if isr == replicas else shared(isr),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        state,
        shared(removing) if removing else (),
        shared(adding) if adding else (),
        shared(elr) if elr else (),
        shared(last_known) if last_known else (),
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

"""How one partition changes when its in-sync replicas, its replicas or who may lead it change.

- A leader stays if it may; else the first replica in sync that may lead; with no replica in sync,
  one of the eligible leader replicas (ELR); else the last known leader, where it is the only one
  known and nobody is eligible; else, where unclean elections are allowed, any replica that is up.
- With ELR on, replicas that leave the in-sync set while it is smaller than the topic's minimum
  stay eligible, unless they lost data in an unclean stop; the in-sync set may become empty.
- A reassignment is done once its new replicas are in sync.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from kraftline.controller.java_order import in_number_order
from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionRegistration,
    Replicas,
)
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.uuids import Uuid

_NOTHING: Final = PartitionChangeRecord()


class Election(enum.Enum):
    """PREFERRED wants the first replica even where the leader could stay; UNCLEAN rather loses
    records than has no leader."""

    PREFERRED = enum.auto()
    ONLINE = enum.auto()
    UNCLEAN = enum.auto()


class Elected(msgspec.Struct, frozen=True, gc=False):
    leader: int
    is_unclean: bool = False


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What a change depends on beside the partition: `may_lead` tells whether a broker is fit to
    lead it, `directory_of` where a broker keeps a replica that it is new to, `lost_data` which
    replicas cannot be trusted to be complete."""

    version: MetadataVersion
    has_elr: bool
    min_isr: int
    may_lead: Callable[[int, PartitionRegistration], bool]
    directory_of: Callable[[int], Uuid]
    election: Election = Election.ONLINE
    lost_data: Collection[int] = ()


class Target(msgspec.Struct, kw_only=True):
    """What the partition shall become; it starts as the partition is."""

    isr: Replicas
    replicas: Replicas
    removing: Replicas
    adding: Replicas
    elr: Replicas


def partition_change(
    before: PartitionRegistration,
    around: Circumstances,
    *,
    isr: Replicas | None = None,
    replicas: Replicas | None = None,
    removing: Replicas | None = None,
    adding: Replicas | None = None,
    moved: Mapping[int, Uuid] = {},
) -> PartitionChangeRecord | None:
    """The record that leads to new in-sync replicas, replicas, and replicas that a reassignment
    removes and adds (None: as they are), and to replicas of some brokers in other directories, with
    what follows from them, but for which partition it is; None where nothing changes."""
    target = Target(
        isr=before.isr if isr is None else isr,
        replicas=before.replicas if replicas is None else replicas,
        removing=before.removing_replicas if removing is None else removing,
        adding=before.adding_replicas if adding is None else adding,
        elr=before.elr,
    )
    _complete_reassignment(target)
    if around.has_elr:
        target.elr = _eligible(before, target, around)
    elected = _elect(before, target, around)
    leader, state = NO_LEADER_CHANGE, -1
    new_isr: Replicas | None = None
    if elected.leader != before.leader:
        leader = elected.leader
        if leader in target.elr:
            target.isr = (leader,)
            target.elr = tuple(each for each in target.elr if each != leader)
        if elected.is_unclean:
            # Whoever else was in sync may have more than the new leader, which counts no more.
            new_isr = (leader,)
            if before.leader_recovery_state != RECOVERING:
                state = RECOVERING
    elif not set(target.replicas) >= set(before.replicas):
        # A replica that goes must see a new epoch.
        leader = before.leader
    if new_isr is not None or not around.has_elr:
        target.elr = ()
    if new_isr is None and target.isr != before.isr and (target.isr or around.has_elr):
        new_isr = target.isr
    if (
        around.version.leader_epoch_bump_required_on_isr_shrink
        and leader == NO_LEADER_CHANGE
        and new_isr is not None
        and not set(new_isr) >= set(before.isr)
    ):
        leader = before.leader
    record = PartitionChangeRecord(
        isr=new_isr,
        leader=leader,
        leader_recovery_state=state,
        eligible_leader_replicas=None if target.elr == before.elr else target.elr,
        last_known_elr=_last_known(before, leader) if around.has_elr else None,
        replicas=None if target.replicas == before.replicas else target.replicas,
        directories=_directories(before, target, around, moved),
        removing_replicas=_changed(before.removing_replicas, target.removing),
        adding_replicas=_changed(before.adding_replicas, target.adding),
    )
    return None if record == _NOTHING else record


def _complete_reassignment(target: Target) -> None:
    if not target.removing and not target.adding:
        return
    isr = tuple(each for each in target.isr if each not in target.removing)
    replicas = tuple(each for each in target.replicas if each not in target.removing)
    if target.removing and not (isr and replicas):
        return
    if not set(target.adding) <= set(isr):
        return
    if len(target.adding) < len(target.removing) and not set(replicas) <= set(isr):
        return
    target.isr, target.replicas = isr, replicas
    target.removing = target.adding = ()


def _eligible(before: PartitionRegistration, target: Target, around: Circumstances) -> Replicas:
    if len(target.isr) >= around.min_isr:
        return ()
    candidates = in_number_order([*target.elr, *before.isr])
    return tuple(
        each for each in candidates if each not in target.isr and each not in around.lost_data
    )


def _elect(before: PartitionRegistration, target: Target, around: Circumstances) -> Elected:
    # A replica that is out of sync may lead only if it is eligible and nobody is in sync.
    fit = target.isr or target.elr
    first_choices = [before.leader, *target.replicas]
    if around.election is Election.PREFERRED:
        first_choices = [*target.replicas[:1], *first_choices]
    for replica in first_choices:
        if replica in fit and around.may_lead(replica, before):
            return Elected(replica)
    if around.has_elr and not fit and len(before.last_known_elr) == 1:
        (last_known,) = before.last_known_elr
        if around.may_lead(last_known, before):
            return Elected(last_known, is_unclean=True)
    if around.election is Election.UNCLEAN:
        for replica in target.replicas:
            if around.may_lead(replica, before):
                return Elected(replica, is_unclean=True)
    return Elected(NO_LEADER)


def _last_known(before: PartitionRegistration, leader: int) -> Replicas | None:
    """Who led when a partition came to have no leader; nobody while there is one."""
    if leader == NO_LEADER and not before.last_known_elr:
        return (before.leader,)
    return () if leader >= 0 and before.last_known_elr else None


def _directories(
    before: PartitionRegistration,
    target: Target,
    around: Circumstances,
    moved: Mapping[int, Uuid],
) -> tuple[Uuid, ...] | None:
    if not around.version.directory_assignment_supported:
        return None
    if target.replicas == before.replicas and not moved:
        return None
    known = dict(zip(before.replicas, before.directories, strict=True)) | dict(moved)
    after = tuple(
        known[each] if each in known else around.directory_of(each) for each in target.replicas
    )
    return None if after == before.directories else after


def _changed(before: Replicas, after: Replicas) -> Replicas | None:
    return None if after == before else after

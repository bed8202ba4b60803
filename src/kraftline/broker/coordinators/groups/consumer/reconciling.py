"""One step of a member towards its target: first it gives up what it must, then it gets what is
free. No partition is given to a member before the one that had it has said that it let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned
from kraftline.broker.coordinators.groups.consumer.member import (
    Member,
    MemberState,
    Owned,
    changed,
)
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid

# What a member says that it has; None: it does not say.
Held: TypeAlias = Iterable[tuple[Uuid, Iterable[int]]] | None
IsOwned: TypeAlias = Callable[[Uuid, int], bool]


def reconciled(
    member: Member,
    target_epoch: int,
    target: Assigned,
    *,
    is_owned: IsOwned,
    wanted: Callable[[Uuid], bool],
    subscribes_to_nothing: bool,
    has_subscription_changed: bool,
    held: Held,
) -> Member:
    """The member after the step; itself where there is none to take.

    `is_owned`: has anybody got a partition? `wanted`: does the member subscribe to a topic?"""

    def next_step(epoch: int) -> Member:
        return _next(member, epoch, target_epoch, target, is_owned, wanted, held)

    def without_unwanted() -> Member:
        if not has_subscription_changed:
            return member
        return _without_unwanted(member, wanted, subscribes_to_nothing, held)

    match member.state:
        case MemberState.STABLE:
            return next_step(member.epoch) if member.epoch != target_epoch else without_unwanted()
        case MemberState.UNREVOKED_PARTITIONS:
            if _holds(held, member.revoking):
                return without_unwanted()
            return next_step(member.epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return next_step(member.epoch)
        case MemberState.UNKNOWN:
            # A later release wrote a state that is not known here: only from nothing on.
            if held is None or any(True for _ in held):
                raise Refusal(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. The member must abandon all "
                    "its partitions and rejoin.",
                )
            return next_step(target_epoch)


def _next(
    member: Member,
    epoch: int,
    target_epoch: int,
    target: Assigned,
    is_owned: IsOwned,
    wanted: Callable[[Uuid], bool],
    held: Held,
) -> Member:
    keep: dict[Uuid, Mapping[int, int]] = {}
    revoke: dict[Uuid, Mapping[int, int]] = {}
    get: dict[Uuid, list[int]] = {}
    waits = False
    for topic in dict.fromkeys((*target, *member.assigned)):
        aim = target.get(topic, frozenset()) if wanted(topic) else frozenset()
        has = member.assigned.get(topic, {})
        kept = {each: since for each, since in has.items() if each in aim}
        lost = {each: since for each, since in has.items() if each not in aim}
        own = member.revoking.get(topic, {})
        free = []
        for each in aim:
            if each in kept:
                continue
            if is_owned(topic, each) and each not in own:
                waits = True
            else:
                free.append(each)
        if kept:
            keep[topic] = kept
        if lost:
            revoke[topic] = lost
        if free:
            get[topic] = free
    if revoke and _holds(held, revoke):
        return changed(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=keep,
            revoking=revoke,
        )
    for topic, free in get.items():
        keep[topic] = {**keep.get(topic, {}), **dict.fromkeys(free, target_epoch)}
    return changed(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=keep,
        revoking={},
    )


def _without_unwanted(
    member: Member, wanted: Callable[[Uuid], bool], subscribes_to_nothing: bool, held: Held
) -> Member:
    """A member that does not subscribe to a topic any more gives it up before there is a new
    target: it would otherwise be told to read what it does not want."""
    keep: Owned
    revoke: Owned
    if subscribes_to_nothing and not member.revoking:
        keep, revoke = {}, member.assigned
    else:
        keep = {topic: each for topic, each in member.assigned.items() if wanted(topic)}
        revoke = dict(member.revoking) | {
            topic: {**member.revoking.get(topic, {}), **each}
            for topic, each in member.assigned.items()
            if topic not in keep
        }
        if len(keep) == len(member.assigned):
            return member
    if revoke and _holds(held, revoke):
        return changed(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=keep,
            revoking=revoke,
        )
    return changed(member, previous_epoch=member.epoch, assigned=keep)


def _holds(held: Held, partitions: Owned) -> bool:
    """Has the member still got any of them? It has, as long as it does not say what it has."""
    if held is None:
        return True
    return any(each in partitions.get(topic, ()) for topic, numbers in held for each in numbers)

"""What follows for a group when a member has changed: a new epoch, a new target, and the member's
next step towards it. The same for members of both protocols."""

from __future__ import annotations

from enum import Enum

from kraftline.broker.coordinators.groups.consumer import records, regexes
from kraftline.broker.coordinators.groups.consumer.assignors import ASSIGNORS
from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned
from kraftline.broker.coordinators.groups.consumer.deciding import Assigning, Ground, Step
from kraftline.broker.coordinators.groups.consumer.group import NOTHING, ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.reconciling import Held, reconciled
from kraftline.broker.coordinators.groups.consumer.subscriptions import topics_of
from kraftline.broker.coordinators.groups.consumer.targets import (
    by_itself,
    may_assign,
    target_records,
    task_of,
    weight,
)
from kraftline.schema.uuids import Uuid

# Expressions are looked up at most this often for a group.
_REGEX_PAUSE_MS = 10_000


class RegexChange(Enum):
    NONE = 0
    CHANGED = 1
    # The topics that it matches are known already, so that the group's change with it.
    RESOLVED = 2


def note_subscription(group: ConsumerGroup, step: Step) -> bool:
    """Write down who the member is, if that has changed; whether its topics did."""
    if step.member == step.before:
        return False
    step.changes.append(records.member(group.group_id, step.member))
    return step.member.topics != step.before.topics


def note_regex(group: ConsumerGroup, step: Step, ground: Ground) -> RegexChange:
    """See to the member's regular expression, and whether those of the group are to be looked up:
    when there is a new one, when topics were made, and every now and then."""
    before, now = step.before.regex, step.member.regex
    needs_refresh = False
    change = RegexChange.NONE
    counts = group.subscriptions.regexes
    if before != now:
        change = RegexChange.CHANGED
        if before and counts.get(before, 0) == 1:
            step.changes.append(records.no_regex(group.group_id, before))
        if now:
            if counts.get(now, 0) == 0:
                regexes.check(now)
                needs_refresh = True
            elif now in group.resolved:
                change = RegexChange.RESOLVED
        elif before:
            change = RegexChange.RESOLVED
    if (not needs_refresh and not counts) or ground.is_resolving:
        return change
    last = next(iter(group.resolved.values()), None)
    if last is not None and ground.now <= last.resolved_at + _REGEX_PAUSE_MS:
        return change
    wanted = dict(counts)
    if before:
        wanted[before] = wanted.get(before, 0) - 1
    if now:
        wanted[now] = wanted.get(now, 0) + 1
    all_wanted = frozenset(each for each, count in wanted.items() if count > 0)
    needs_refresh |= len(all_wanted) != len(group.resolved)
    needs_refresh |= (0 if last is None else last.version) < ground.new_topics_at
    needs_refresh |= (
        last is None or ground.now > last.resolved_at + ground.settings.regex_refresh_ms
    )
    if needs_refresh and all_wanted:
        step.regexes = all_wanted
    return change


def raise_epoch(
    group: ConsumerGroup, step: Step, ground: Ground, *, must: bool
) -> tuple[int, bool]:
    """A new group epoch where that must be, or where topics of the group have changed. The epoch,
    and whether all members subscribe to the same topics."""
    member, before = step.member, step.before
    together = group.subscriptions.copy()
    together.remove_member(before)
    together.add_member(member)
    if before.regex and before.regex != member.regex:
        matched = group.resolved.get(before.regex)
        if matched is not None and group.subscriptions.regexes.get(before.regex) == 1:
            together.add_matches(matched.topics, -1)
    hashed = ground.hashes.of(together.topics, ground.image)
    size = len(group.members)
    if member.member_id not in group.members and member.instance_id not in group.statics:
        size += 1
    epoch = group.epoch
    if must or hashed != group.metadata_hash:
        epoch += 1
        step.changes.append(records.group_epoch(group.group_id, epoch, hashed))
    if group.has_partition_metadata:
        step.changes.append(records.no_partition_metadata(group.group_id))
    return epoch, together.is_even(size)


def retarget(
    group: ConsumerGroup, step: Step, ground: Ground, epoch: int, *, is_even: bool
) -> tuple[int, Assigned]:
    """A new target where the group's epoch has moved on and it is time; the epoch of the target,
    and what it is for the member. That of a large group is found in a thread, and comes later."""
    settings = ground.settings
    if group.assignment_epoch >= epoch or not may_assign(
        group.assigned_at, settings.assignment_ms(group.group_id, ground.image), ground.now
    ):
        return group.assignment_epoch, group.target_of(step.member)
    if ground.is_assigning:
        return group.assignment_epoch, group.target_of(step.member)
    name = group.preferred_assignor(step.before, step.member) or settings.assignors[0]
    task = task_of(group, step.member, is_even=is_even, topics=ground.image.topics)
    if weight(task) > settings.assigns_at_once:
        step.assigning = Assigning(epoch, name, by_itself(task))
        return group.assignment_epoch, group.target_of(step.member)
    found = ASSIGNORS[name](task)
    step.changes += target_records(group, task, found, epoch, ground.now)
    return epoch, found.get(step.member.member_id, NOTHING)


def reconcile(
    group: ConsumerGroup,
    step: Step,
    ground: Ground,
    epoch: int,
    target: Assigned,
    *,
    has_subscription_changed: bool,
    held: Held,
) -> None:
    """The member's next step towards the target."""
    member = step.member
    if not has_subscription_changed and member.is_reconciled(epoch):
        return
    names = topics_of(member, group.resolved)
    topics = ground.image.topics

    def wanted(topic: Uuid) -> bool:
        known = topics.by_id.get(topic)
        return known is not None and known.name in names

    after = reconciled(
        member,
        epoch,
        target,
        is_owned=group.is_owned,
        wanted=wanted,
        subscribes_to_nothing=not names,
        has_subscription_changed=has_subscription_changed,
        held=held,
    )
    if after != member:
        step.changes.append(records.current(group.group_id, after))
        step.member = after
        step.has_moved = True

"""Noise folded: many changes of one kind with one cause become one with a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from kraftline.inspect.cluster.telling import Told
from kraftline.metadata.words import Change
from kraftline.metadata.words.values import because, numbers, plural

# So many are told one by one: a handful says more than a count.
_FEW = 3
_NAMES = 3
# Of these each says something of its own.
_MANY = 12
_WORTH_TELLING = ("topic.", "acl.", "reassignment.")
# Leaderships that one event moves come in many batches, within a short time.
_TOGETHER_MS = 2_000
_FOLDED = (
    "leader.",
    "isr.",
    "elr.",
    "directory.",
    "reassignment.",
    "replicas.",
    "topic.",
    "acl.",
)


def fold(told: Iterable[Told], *, few: int = _FEW) -> Iterator[Told]:
    """In order; a folded one stands where its first was."""
    waiting: dict[tuple[object, ...], list[tuple[int, Told]]] = {}
    order: list[list[tuple[int, Told]]] = []
    since = None
    for place, one in enumerate(told):
        if since is not None and one.time - since > _TOGETHER_MS:
            yield from _flush(order, few)
            waiting, order, since = {}, [], None
        since = one.time if since is None else since
        key = _key(one.change)
        if key is None:
            order.append([(place, one)])
            # Something else happened: what comes behind it is another story.
            waiting = {k: v for k, v in waiting.items() if one.change.brokers == ()}
        elif key in waiting:
            waiting[key].append((place, one))
        else:
            waiting[key] = [(place, one)]
            order.append(waiting[key])
    yield from _flush(order, few)


def fold_changes(changes: Iterable[Change], *, few: int = _FEW) -> list[Told]:
    """The same for changes without moments."""
    return list(fold((Told(offset=-1, time=0, change=change) for change in changes), few=few))


def _key(change: Change) -> tuple[object, ...] | None:
    if not change.kind.startswith(_FOLDED):
        return None
    if change.kind in ("leader.moved", "leader.lost"):
        return change.kind, change.because, change.before
    if change.kind.startswith(("isr.", "leader.elected")):
        return change.kind, change.because, change.brokers
    if change.kind.startswith("topic."):
        return (change.kind,)
    if change.kind.startswith("acl."):
        return change.kind, change.subject
    if change.kind.startswith("reassignment."):
        return (change.kind,)
    if change.kind == "elr.changed":
        return change.kind, change.because, change.brokers, _gained(change)
    return change.kind, change.because


def _gained(change: Change) -> bool:
    """Whether somebody may lead who could not."""
    return not set(change.after) <= set(change.before)


def _flush(order: list[list[tuple[int, Told]]], few: int) -> Iterator[Told]:
    told: list[tuple[int, Told]] = []
    for group in order:
        limit = max(few, _MANY) if group[0][1].change.kind.startswith(_WORTH_TELLING) else few
        told += (
            group if len(group) <= limit else [(group[0][0], _folded([one for _, one in group]))]
        )
    # Those that stay single go back to where they were.
    for _, one in sorted(told, key=lambda each: each[0]):
        yield one


def _folded(group: list[Told]) -> Told:
    first, changes = group[0], [one.change for one in group]
    subjects = tuple(dict.fromkeys(change.subject for change in changes))
    change = msgspec.structs.replace(
        first.change,
        text=_text(changes, subjects),
        subject=_some(subjects),
        before=None,
        after=None,
        topic=None,
        partition=None,
        brokers=tuple(sorted({broker for each in changes for broker in each.brokers})),
    )
    return Told(
        offset=first.offset, time=first.time, change=change, count=len(group), subjects=subjects
    )


def _text(changes: list[Change], subjects: tuple[str, ...]) -> str:
    first = changes[0]
    why = because(first.because)
    partitions = plural(len(subjects), "partition")
    named = _some(subjects)
    match first.kind:
        case "leader.moved":
            to = Counter(change.after for change in changes)
            went = ", ".join(f"{count} to {broker}" for broker, count in sorted(to.items()))
            return f"{plural(len(changes), 'leader')} moved away from {first.before}{why}: {went}"
        case "leader.lost":
            return f"{partitions} led by {first.before} have no leader any more{why}: {named}"
        case "leader.elected":
            return f"{partitions} have a leader again: {numbers(first.brokers)}{why}: {named}"
        case "leader.unclean":
            return f"unclean election in {partitions}{why}: records may be lost: {named}"
        case "isr.shrank":
            return f"{numbers(first.brokers)} left the ISR of {partitions}{why}: {named}"
        case "isr.grew":
            return f"{numbers(first.brokers)} caught up in {partitions}: {named}"
        case "elr.changed":
            who = f"{numbers(first.brokers)} {'is' if len(first.brokers) == 1 else 'are'}"
            if _gained(first):
                return f"{who} out of sync but eligible to lead {partitions}{why}: {named}"
            return f"{who} no longer eligible to lead {partitions}{why}: {named}"
        case "topic.created" | "topic.deleted":
            names = [subject.removeprefix("topic ") for subject in subjects]
            return f"{plural(len(changes), 'topic')} {first.kind[6:]}: {_some(names)}"
        case "acl.added" | "acl.removed":
            return f"{plural(len(changes), 'ACL')} {first.kind[4:]} for {first.subject[7:]}"
    what = _KINDS.get(first.kind, first.kind)
    return f"{what} in {partitions}{why}: {named}"


_KINDS = {
    "leader.epoch": "a new leader epoch under the same leader",
    "leader.recovered": "recovery from an unclean election",
    "isr.changed": "another ISR",
    "isr.reordered": "another order of the ISR",
    "elr.last-known": "another last known ELR",
    "elr.cleared": "eligible leader replicas cleared",
    "directory.assigned": "directories told of",
    "directory.moved": "replicas moved between directories",
    "directory.lost": "directories lost",
    "directory.unassigned": "directories no longer known",
    "reassignment.started": "reassignment started",
    "reassignment.progressed": "reassignment went on",
    "reassignment.redirected": "reassignment given another target",
    "reassignment.completed": "reassignment completed",
    "reassignment.cancelled": "reassignment cancelled",
    "replicas.changed": "other replicas",
    "replicas.reordered": "another order of replicas",
}


def _some(names: Iterable[str]) -> str:
    found = list(names)
    if len(found) <= _NAMES + 1:
        return ", ".join(found)
    return f"{', '.join(found[:_NAMES])} and {len(found) - _NAMES:,} more"

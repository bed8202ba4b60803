"""What happened to a partition, from how it was and how it is: leader, ISR, replicas, ELR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from kraftline.metadata.partition import (
    LOST,
    MIGRATING,
    NO_LEADER,
    RECOVERING,
    UNASSIGNED,
    PartitionRegistration,
)
from kraftline.metadata.words.change import Change
from kraftline.metadata.words.values import because, brokers, numbers
from kraftline.schema.uuids import Uuid

# Why a broker would lose its place (or, True, get it back), given where its replica is: in words,
# or None if nobody knows.
Why: TypeAlias = Callable[[int, bool, Uuid | None], str | None]


def unknown(broker: int, back: bool, directory: Uuid | None) -> str | None:
    return None


def partition_changes(
    topic: str,
    partition: int,
    before: PartitionRegistration,
    after: PartitionRegistration,
    why: Why = unknown,
) -> list[Change]:
    """All that is different, the most important first."""
    return list(_Said(topic, partition, before, after, why).all())


class _Said:
    def __init__(
        self,
        topic: str,
        partition: int,
        before: PartitionRegistration,
        after: PartitionRegistration,
        why: Why,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.name = f"{topic}-{partition}"
        self.before = before
        self.after = after
        self.why = why

    def all(self) -> Iterator[Change]:
        before, after = self.before, self.after
        yield from self._leader()
        if before.isr != after.isr:
            yield from self._isr()
        moved = (before.replicas, before.adding_replicas, before.removing_replicas) != (
            after.replicas,
            after.adding_replicas,
            after.removing_replicas,
        )
        if moved:
            yield self._replicas()
        if before.elr != after.elr:
            yield self._elr()
        if before.last_known_elr != after.last_known_elr:
            last = f"the last known ELR of {self.name} is now {numbers(after.last_known_elr)}"
            yield self._change(
                "elr.last-known", last, before.last_known_elr, after.last_known_elr, minor=True
            )
        if before.directories != after.directories:
            yield from self._directories()

    def _change(
        self,
        kind: str,
        text: str,
        before: Any,
        after: Any,
        *,
        cause: str | None = None,
        who: tuple[int, ...] = (),
        minor: bool = False,
    ) -> Change:
        return Change(
            kind=kind,
            subject=self.name,
            text=text,
            before=before,
            after=after,
            because=cause,
            topic=self.topic,
            partition=self.partition,
            brokers=who,
            minor=minor,
        )

    def _leader(self) -> Iterator[Change]:
        before, after, name = self.before, self.after, self.name
        was, now = before.leader, after.leader
        unclean = (
            after.leader_recovery_state == RECOVERING and after.leader_epoch != before.leader_epoch
        )
        if unclean and now != NO_LEADER:
            cause = self.why(now, True, None) if was == NO_LEADER else self._why(was)
            text = (
                f"unclean election{because(cause)}: {name} is led by {now}, which was not in sync; "
                "records may be lost"
            )
            yield self._change("leader.unclean", text, was, now, cause=cause, who=_real(was, now))
        elif was != now and now == NO_LEADER:
            cause = self._why(was)
            text = f"{name} lost its leader {was}{because(cause)}"
            yield self._change("leader.lost", text, was, now, cause=cause, who=(was,))
        elif was != now and was == NO_LEADER:
            cause = self.why(now, True, None)
            text = f"{name} has a leader again: {now}{because(cause)}"
            yield self._change("leader.elected", text, was, now, cause=cause, who=(now,))
        elif was != now:
            cause = self._why_moved()
            text = f"leader of {name} moved {was} -> {now}{because(cause)}"
            yield self._change("leader.moved", text, was, now, cause=cause, who=(was, now))
        elif before.leader_epoch != after.leader_epoch and now != NO_LEADER:
            text = (
                f"leader of {name} stays {now}, in leader epoch {after.leader_epoch} "
                f"(was {before.leader_epoch})"
            )
            yield self._change(
                "leader.epoch", text, before.leader_epoch, after.leader_epoch, minor=True
            )
        if before.leader_recovery_state == RECOVERING and not after.leader_recovery_state:
            text = f"{name} has recovered from its unclean election"
            yield self._change("leader.recovered", text, "recovering", "recovered")

    def _why(self, broker: int) -> str | None:
        directory = self.after.directory(broker) or self.before.directory(broker)
        return self.why(broker, False, directory)

    def _why_moved(self) -> str | None:
        before, after = self.before, self.after
        if before.leader not in after.replicas:
            return f"broker {before.leader} is no longer a replica"
        known = self._why(before.leader)
        if known is not None:
            return known
        if after.has_preferred_leader and not before.has_preferred_leader:
            return f"{after.leader} is the preferred leader"
        return None

    def _isr(self) -> Iterator[Change]:
        before, after, name = self.before, self.after, self.name
        gone = tuple(each for each in before.isr if each not in after.isr)
        new = tuple(each for each in after.isr if each not in before.isr)
        now = f"in sync: {numbers(after.isr)}"
        if set(after.isr) >= set(after.replicas):
            now = f"all in sync: {numbers(after.isr)}"
        if gone and new:
            text = f"ISR of {name} changed: {numbers(gone)} left, {numbers(new)} joined; {now}"
            yield self._change("isr.changed", text, before.isr, after.isr, who=(*gone, *new))
        elif gone:
            cause = self._why_out(gone)
            text = f"ISR of {name} shrank: {numbers(gone)} left{because(cause)}; {now}"
            yield self._change("isr.shrank", text, before.isr, after.isr, cause=cause, who=gone)
        elif new:
            text = f"ISR of {name} grew: {numbers(new)} caught up; {now}"
            # A leader is in sync by definition: that it was elected has been said.
            elected = new == (after.leader,) and before.leader != after.leader
            yield self._change("isr.grew", text, before.isr, after.isr, who=new, minor=elected)
        else:
            text = f"ISR of {name} is in another order: {numbers(after.isr)}"
            yield self._change("isr.reordered", text, before.isr, after.isr, minor=True)

    def _why_out(self, gone: tuple[int, ...]) -> str | None:
        left = [each for each in gone if each not in self.after.replicas]
        if left:
            return f"{_are(left)} no longer a replica"
        for each in gone:
            known = self._why(each)
            if known is not None:
                return known
        return None

    def _replicas(self) -> Change:
        before, after, name = self.before, self.after, self.name
        was, now = before.replicas, after.replicas
        under_way = before.adding_replicas or before.removing_replicas
        still = after.adding_replicas or after.removing_replicas
        who = tuple(sorted(set(was) ^ set(now) | set(after.adding_replicas)))
        if still and not under_way:
            target = tuple(each for each in now if each not in after.removing_replicas)
            parts = []
            if after.adding_replicas:
                parts.append(f"adding {numbers(after.adding_replicas)}")
            if after.removing_replicas:
                parts.append(f"removing {numbers(after.removing_replicas)}")
            origin = tuple(each for each in was if each not in after.adding_replicas)
            text = (
                f"reassignment of {name} started: {_list(origin)} -> {_list(target)} "
                f"({', '.join(parts)})"
            )
            return self._change("reassignment.started", text, origin, target, who=who)
        if under_way and not still:
            origin = tuple(each for each in was if each not in before.adding_replicas)
            came = set(now) & set(before.adding_replicas)
            stayed = set(now) & set(before.removing_replicas)
            if not came if before.adding_replicas else stayed:
                text = f"reassignment of {name} was cancelled: replicas are {_list(now)} again"
                return self._change("reassignment.cancelled", text, was, now, who=who)
            text = f"reassignment of {name} completed: replicas are now {_list(now)}"
            return self._change("reassignment.completed", text, origin, now, who=who)
        if still:
            left = []
            if after.adding_replicas:
                left.append(f"still adding {numbers(after.adding_replicas)}")
            if after.removing_replicas:
                left.append(f"still removing {numbers(after.removing_replicas)}")
            meant = tuple(each for each in was if each not in before.removing_replicas)
            target = tuple(each for each in now if each not in after.removing_replicas)
            if meant != target:
                text = (
                    f"reassignment of {name} was given another target: {_list(target)} instead of "
                    f"{_list(meant)} ({', '.join(left).replace('still ', '')})"
                )
                return self._change("reassignment.redirected", text, meant, target, who=who)
            text = (
                f"reassignment of {name} went on: replicas {_list(was)} -> {_list(now)}, "
                f"{', '.join(left)}"
            )
            return self._change("reassignment.progressed", text, was, now, who=who)
        if sorted(was) == sorted(now):
            text = (
                f"replicas of {name} are in another order: {_list(was)} -> {_list(now)}; "
                f"{now[0]} is now preferred as leader"
            )
            return self._change("replicas.reordered", text, was, now)
        text = f"replicas of {name} changed {_list(was)} -> {_list(now)}"
        return self._change("replicas.changed", text, was, now, who=who)

    def _elr(self) -> Change:
        before, after = self.before.elr, self.after.elr
        gone = tuple(each for each in before if each not in after)
        new = tuple(each for each in after if each not in before)
        if not after:
            text = f"nobody outside the ISR is eligible to lead {self.name} any more"
        elif gone and not new:
            text = f"{_are(gone)} no longer eligible to lead {self.name} (ELR: {numbers(after)})"
        else:
            text = (
                f"{_are(after)} out of sync but eligible to lead {self.name} "
                f"(ELR was {numbers(before)})"
            )
        # It follows from the ISR or the replicas; alone, it says something.
        moved = bool(gone) and not new and not set(gone) & set(self.after.replicas)
        follows = moved or self.before.isr != self.after.isr
        who = (*gone, *new)
        return self._change("elr.changed", text, before, after, who=who, minor=follows)

    def _directories(self) -> Iterator[Change]:
        for replica, now in zip(self.after.replicas, self.after.directories, strict=True):
            was = self.before.directory(replica)
            if was is None or was == now:
                continue
            where = f"{self.name} on broker {replica}"
            who = (replica,)
            if now == LOST:
                text = f"the directory of {where} is lost"
                yield self._change("directory.lost", text, str(was), str(now), who=who)
            elif was in (UNASSIGNED, MIGRATING):
                text = f"{where} is in directory {now}"
                yield self._change(
                    "directory.assigned", text, str(was), str(now), who=who, minor=True
                )
            elif now in (UNASSIGNED, MIGRATING):
                text = f"{where} is in no known directory any more (was in {was})"
                yield self._change("directory.unassigned", text, str(was), str(now), who=who)
            else:
                text = f"{where} moved from directory {was} to {now}"
                yield self._change("directory.moved", text, str(was), str(now), who=who)


def _real(*found: int) -> tuple[int, ...]:
    return tuple(each for each in found if each != NO_LEADER)


def _are(found: list[int] | tuple[int, ...]) -> str:
    return f"{brokers(found)} {'is' if len(found) == 1 else 'are'}"


def _list(replicas: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, replicas))}]"

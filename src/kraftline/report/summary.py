"""What happened, in sentences for somebody who was woken by it: the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kraftline.inspect.cluster.health import (
    OFFLINE,
    REASSIGNING,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
)
from kraftline.metadata.words.values import plural
from kraftline.report.brokers import Outage
from kraftline.report.changes import Noted
from kraftline.report.findings import Findings
from kraftline.report.troubles import Episode
from kraftline.report.window import MINUTE, Clock, length

BAD, WARN, NOTE, FINE = "bad", "warn", "note", "fine"
LEVELS = (BAD, WARN, NOTE, FINE)  # the worst first
_NAMES = 4
_EPISODES = 3
_LOSS = "records may be lost"


class Sentence(Struct, frozen=True):
    """`label` is what it is about, in a word or two."""

    level: str
    label: str
    text: str


class Summary(Struct, frozen=True):
    """`now` is how things stand at the end: what one wants to know before all else."""

    level: str
    headline: str
    now: str
    now_level: str
    sentences: list[Sentence]


def summary(found: Findings) -> Summary:
    clock = Clock(found.window)
    sentences = [
        *_offline(found, clock),
        *_unclean(found, clock),
        *_short_of_replicas(found, clock, UNDER_MIN_ISR),
        *_brokers(found, clock),
        *_short_of_replicas(found, clock, UNDER_REPLICATED),
        *_groups(found, clock),
        *_reassigning(found, clock),
        *_gaps(found),
        *_changes(found, clock),
        *_access(found, clock),
    ]
    levels = {each.level for each in sentences}
    level = next((each for each in (BAD, WARN) if each in levels), FINE)
    now, now_level = _now(found)
    return Summary(level, _headline(found, level), now, now_level, sentences)


def _headline(found: Findings, level: str) -> str:
    parts = []
    offline = found.troubles.episodes.get(OFFLINE, [])
    if offline:
        longest = max(each.longest for each in offline)
        first, times = offline[0], len(offline) + found.troubles.more.get(OFFLINE, 0)
        if times > 1:
            had = f"partitions were without a leader {_times(times)}, for up to"
        elif first.partitions == 1:
            had = f"{first.names[0]} had no leader for"
        else:
            had = f"{first.partitions:,} partitions had no leader, for up to"
        parts.append(f"{had} {length(longest)}")
    lost = [each for each in found.brokers.outages if each.lost]
    if lost:
        numbers = sorted({each.broker for each in lost})
        who = _some([str(number) for number in numbers], len(numbers))
        many = f"brokers {who} were" if len(numbers) > 1 else f"broker {who} was"
        parts.append(f"{many} lost")
    if "leader.unclean" in found.changes.noted:
        parts.append(_LOSS)
    if not parts:
        short = found.troubles.episodes.get(UNDER_MIN_ISR) or found.troubles.episodes.get(
            UNDER_REPLICATED
        )
        if short:
            worst = max(short, key=lambda each: each.partitions)
            who = plural(worst.partitions, "partition")
            parts.append(f"{who} lacked replicas for {length(worst.length)}")
    if parts:
        return _capital("; ".join(parts))
    if level == WARN:
        return "The cluster was well; some things want a look"
    return "Nothing was wrong"


def _now(found: Findings) -> tuple[str, str]:
    at_end, brokers = found.troubles.at_end, found.brokers
    wrong, level = [], FINE
    out = brokers.registered - brokers.in_service
    if out:
        wrong.append(f"{plural(out, 'broker')} of {brokers.registered} out of service")
        level = WARN
    for kind, said in (
        (OFFLINE, "without a leader"),
        (UNDER_MIN_ISR, "below min.insync.replicas"),
        (UNDER_REPLICATED, "under-replicated"),
    ):
        if at_end.get(kind):
            wrong.append(f"{plural(at_end[kind], 'partition')} {said}")
            level = BAD if kind != UNDER_REPLICATED or level == BAD else WARN
    whole = f"{plural(found.partitions_now, 'partition')} of {plural(found.topics_now, 'topic')}"
    if wrong:
        return f"Still wrong at the end: {_list(wrong)} (of {whole}).", level
    if not brokers.registered:
        return "At the end no broker is registered.", NOTE
    served = f"{brokers.in_service} of {plural(brokers.registered, 'broker')} in service"
    if not found.partitions_now:
        return f"At the end all is well: {served}, no topics.", FINE
    return (
        f"At the end all is well: {served}, {whole} with a leader and all replicas in sync.",
        FINE,
    )


def _offline(found: Findings, clock: Clock) -> Iterator[Sentence]:
    for episode in _longest(found, OFFLINE):
        text = (
            f"{_who(episode)} had no leader for {_lasting(episode)} "
            f"({clock.since(episode.start, episode.end, episode.ongoing)}): "
            "nobody could write or read there."
        )
        yield Sentence(BAD, "offline", text)
    yield from _more_times(found, OFFLINE, BAD, "offline", "partitions were without a leader")


def _unclean(found: Findings, clock: Clock) -> Iterator[Sentence]:
    noted = found.changes.noted.get("leader.unclean")
    if noted is not None:
        many = "election" if noted.count == 1 else "elections"
        text = (
            f"Unclean {many} in {_some(noted.subjects, noted.count)} ({_when(noted, clock)}): "
            f"a replica that was not in sync became leader, {_LOSS}."
        )
        yield Sentence(BAD, "data loss?", text)


def _short_of_replicas(found: Findings, clock: Clock, kind: str) -> Iterator[Sentence]:
    bad = kind == UNDER_MIN_ISR
    level, label = (BAD, "refused writes") if bad else (WARN, "replicas")
    for episode in _longest(found, kind):
        when = clock.since(episode.start, episode.end, episode.ongoing)
        if bad:
            text = (
                f"{_who(episode)} had fewer replicas in sync than min.insync.replicas for "
                f"{_lasting(episode)} ({when}): writes with acks=all were refused."
            )
        else:
            was = "was" if episode.partitions == 1 else "were"
            text = f"{_who(episode)} {was} under-replicated for {_lasting(episode)} ({when})."
        yield Sentence(level, label, text)
    what = "partitions were below min.insync.replicas" if bad else "partitions lacked replicas"
    yield from _more_times(found, kind, level, label, what)


def _longest(found: Findings, kind: str) -> list[Episode]:
    """The longest few, in order of time."""
    longest = found.troubles.episodes.get(kind, [])[:_EPISODES]
    return sorted(longest, key=lambda each: each.start)


def _more_times(
    found: Findings, kind: str, level: str, label: str, what: str
) -> Iterator[Sentence]:
    told = found.troubles.episodes.get(kind, [])
    more = max(0, len(told) - _EPISODES) + found.troubles.more.get(kind, 0)
    if more:
        longest = max(each.longest for each in told[_EPISODES:])
        text = f"{_times(more).capitalize()} more {what}, for at most {length(longest)}."
        yield Sentence(level, label, text)


def _brokers(found: Findings, clock: Clock) -> Iterator[Sentence]:
    """A sentence for each broker that was lost, and for each that left; the longest out first."""
    by_broker: dict[tuple[bool, int], list[Outage]] = {}
    for outage in found.brokers.outages:
        by_broker.setdefault((outage.lost, outage.broker), []).append(outage)
    told = list(by_broker.values())
    for outages in told[: 2 * _EPISODES]:
        yield _outages(sorted(outages, key=lambda each: each.start), clock)
    rest = [outage for outages in told[2 * _EPISODES :] for outage in outages]
    if rest:
        numbers = sorted({each.broker for each in rest})
        who = _some([str(number) for number in numbers], len(numbers))
        text = f"{_times(len(rest)).capitalize()} more a broker was out of service: {who}."
        yield Sentence(WARN, "broker", text)


def _outages(outages: list[Outage], clock: Clock) -> Sentence:
    """Of one broker, all of one kind."""
    last = outages[-1]
    level = BAD if last.lost else WARN
    name = f"Broker {last.broker}"
    lasted = length(sum(each.length for each in outages))
    when = ", ".join(
        clock.since(each.start, each.end, each.ongoing) for each in outages[-_EPISODES:]
    )
    if len(outages) > _EPISODES:
        when = f"the last times {when}"
    what = "lost" if last.lost else "shut down cleanly"
    if len(outages) > 1:
        again = " and is not back" if last.ongoing else ""
        text = f"{name} was {what} {_times(len(outages))}, for {lasted} in all ({when}){again}."
    elif last.ongoing:
        text = f"{name} {'is' if last.lost else 'was'} {what} ({when}) and is not back."
    elif last.lost:
        text = f"{name} was lost for {lasted} ({when}), without a clean stop."
    else:
        text = f"{name} was shut down cleanly and was back after {lasted} ({when})."
    return Sentence(level, "broker", text)


def _groups(found: Findings, clock: Clock) -> Iterator[Sentence]:
    window = found.window
    silent = max(MINUTE, window.length // 10)
    for lag in found.groups.lagging[:_EPISODES]:
        if not lag.behind or window.end - lag.last_commit < silent:
            continue
        since = clock.at(lag.last_commit)
        text = (
            f"Group {lag.group} has committed nothing since {since} and is "
            f"{plural(lag.behind, 'record')} behind in {_some(lag.topics, len(lag.topics))}."
        )
        yield Sentence(WARN, "group", text)


def _reassigning(found: Findings, clock: Clock) -> Iterator[Sentence]:
    for episode in _longest(found, REASSIGNING):
        was = "was" if episode.partitions == 1 else "were"
        when = clock.since(episode.start, episode.end, episode.ongoing)
        text = (
            f"{_who(episode)} {was} being moved to other brokers for {_lasting(episode)} ({when})."
        )
        yield Sentence(NOTE, "moved", text)


def _gaps(found: Findings) -> Iterator[Sentence]:
    if found.gaps.gaps:
        text = (
            f"The data has {plural(found.gaps.gaps, 'gap')}: "
            "what happened there is not known, and not guessed."
        )
        yield Sentence(WARN, "not covered", text)
    if found.gaps.unread:
        files = len({each.file for each in found.gaps.unread})
        more = " or more" if found.gaps.unread_left_out else ""
        text = f"Something in {plural(files, 'file')}{more} could not be used; it is listed below."
        yield Sentence(WARN, "not covered", text)


_CHANGED = {
    "topic.deleted": "topics were deleted",
    "feature.lowered": "features were lowered",
    "feature.raised": "features were raised",
    "config.changed": "configs were changed",
    "config.removed": "configs were removed",
    "config.set": "configs were set",
    "partitions.added": "topics got more partitions",
    "topic.created": "topics were created",
}
_ACCESS = {
    "acl.added": ("ACL", "added"),
    "acl.removed": ("ACL", "removed"),
    "scram.set": ("credential", "set"),
    "scram.changed": ("credential", "changed"),
    "scram.removed": ("credential", "removed"),
    "quota.set": ("quota", "set"),
    "quota.changed": ("quota", "changed"),
    "quota.removed": ("quota", "removed"),
    "token.created": ("delegation token", "created"),
    "token.removed": ("delegation token", "removed"),
}


def _changes(found: Findings, clock: Clock) -> Iterator[Sentence]:
    for kind, what in _CHANGED.items():
        noted = found.changes.noted.get(kind)
        if noted is None:
            continue
        if noted.count == 1:
            text = f"{_capital(noted.texts[0])} ({clock.at(noted.first)})."
        else:
            named = _some(_short(kind, noted), noted.count)
            text = f"{noted.count:,} {what} ({_when(noted, clock)}): {named}."
        yield Sentence(NOTE, "changed", text)


def _access(found: Findings, clock: Clock) -> Iterator[Sentence]:
    """Who may do what, in one sentence: the list of changes has each."""
    noted = {kind: found.changes.noted[kind] for kind in _ACCESS if kind in found.changes.noted}
    if noted:
        said = [
            f"{plural(each.count, _ACCESS[kind][0])} {_ACCESS[kind][1]}"
            for kind, each in noted.items()
        ]
        first = clock.at(min(each.first for each in noted.values()))
        last = clock.at(max(each.last for each in noted.values()))
        when = first if first == last else f"{first} to {last}"
        yield Sentence(NOTE, "changed", f"Access and quotas: {_list(said)} ({when}).")


def _short(kind: str, noted: Noted) -> list[str]:
    """What was changed; of configs the sentence itself."""
    if kind.startswith(("topic.", "partitions.")):
        return [subject.removeprefix("topic ") for subject in noted.subjects]
    return noted.texts


def _who(episode: Episode) -> str:
    if episode.partitions <= _NAMES:
        return _list(episode.names)
    some = _some(episode.names, episode.partitions)
    return f"{episode.partitions:,} partitions of {plural(episode.topics, 'topic')} ({some})"


def _lasting(episode: Episode) -> str:
    """How long the episode was; where no single partition had it so long, that too."""
    if episode.partitions == 1 or episode.longest >= episode.length * 0.95:
        return length(episode.length)
    return f"{length(episode.length)} in all, none of them longer than {length(episode.longest)}"


def _when(noted: Noted, clock: Clock) -> str:
    first, last = clock.at(noted.first), clock.at(noted.last)
    return first if first == last else f"{first} to {last}"


def _some(names: Iterable[str], count: int) -> str:
    """The first few; how many there are besides."""
    found = list(names)
    if count <= _NAMES and len(found) <= _NAMES:
        return _list(found)
    shown = found[: _NAMES - 1]
    return f"{', '.join(shown)} and {count - len(shown):,} more"


def _list(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _capital(text: str) -> str:
    """Names keep their case: a sentence may begin with `retention.ms`."""
    return text[0].upper() + text[1:] if text.split(" ", 1)[0].isalpha() else text

"""What happened between two moments, record by record: `kraftline changes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import chain

import msgspec

from kraftline.inspect.cluster.difference import difference, quorum_difference
from kraftline.inspect.cluster.state import State
from kraftline.inspect.cluster.telling import Teller, Told
from kraftline.inspect.history import History, Trouble, Unanswerable
from kraftline.inspect.history.legs import Leg
from kraftline.inspect.history.moments import AtOffset, AtTime, Moment
from kraftline.inspect.moments import is_after, show_moment
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.words import Change
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid


class Filter(msgspec.Struct, frozen=True):
    """Which changes to tell: topics by name or pattern, brokers, kinds by code or first part."""

    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    minor: bool = False

    def wants(self, change: Change) -> bool:
        if change.minor and not self.minor and not self._kind(change):
            return False
        if self.kinds and not self._kind(change):
            return False
        if self.brokers and not set(self.brokers) & set(change.brokers):
            return False
        return not self.topics or (change.topic is not None and self.topic(change.topic))

    def topic(self, name: str) -> bool:
        return any(fnmatchcase(name, each) for each in self.topics)

    def _kind(self, change: Change) -> bool:
        return any(change.kind == kind or change.kind.startswith(f"{kind}.") for kind in self.kinds)


def story(
    history: History,
    since: Moment | None,
    until: Moment | None,
    wanted: Filter,
    *,
    quick: bool = False,
) -> Iterator[Told]:
    """All that was changed after `since` (None: from the first that is known), up to `until`.

    `quick`: the replay begins at the newest snapshot before `since`. Without `since`, that is the
    newest before `until`, and what was before it is not told.
    """
    if quick and since is None:
        known = [leg for leg in history.legs if leg.first_offset <= _last(leg, until)]
        if known:
            since = AtOffset(history.start(known[-1], _last(known[-1], until), quick=True)[1])
    earlier: Leg | None = None
    image: MetadataImage | None = None  # at the end of the leg before, where it was told
    for leg in history.legs:
        first, last = _first(leg, since), _last(leg, until)
        if earlier is not None and _begins(leg, since) and last >= leg.first_offset:
            before = image or history.at(earlier, earlier.last_offset, quick=quick)
            yield from bridged(history, before, leg, wanted)
        earlier, image = leg, None
        if last < first:
            continue
        start_image, start = history.resume(leg, first, quick=quick)
        state = State(start_image)
        teller = Teller(state, history.faults(leg), _matters(wanted, state))
        for effect, time in history.effects(leg, start, last):
            told = [one for one in teller.tell(effect, time) if one.offset >= first]
            told.sort(key=lambda one: one.offset)
            yield from (one for one in told if wanted.wants(one.change))
        if last == leg.last_offset:
            image = state.delta.apply(history.provenance(leg, last))


def _begins(leg: Leg, since: Moment | None) -> bool:
    """Whether a window begins before the leg does."""
    match since:
        case AtOffset(offset=offset):
            return offset <= leg.first_offset
        case AtTime(time=time):
            return time <= leg.first_time
    return True


# What a record about a partition may be told as.
_OF_PARTITIONS = ("leader", "isr", "reassignment", "replicas", "elr", "directory")


def _matters(wanted: Filter, state: State) -> Callable[[Message], bool] | None:
    """Which records to find words for; most of a log is of partitions that nobody asked about."""
    by_kind = wanted.kinds and not any(
        kind.partition(".")[0] in _OF_PARTITIONS for kind in wanted.kinds
    )
    if not by_kind and not wanted.topics:
        return None
    known: dict[Uuid, bool] = {}

    def matters(message: Message) -> bool:
        if not isinstance(message, PartitionChangeRecord):
            return True
        if by_kind:
            return False
        topic = message.topic_id
        if topic not in known:
            name = state.topic_name(topic)
            known[topic] = name is not None and wanted.topic(name)
        return known[topic]

    return matters


def window(history: History, since: Moment | None, until: Moment | None) -> int:
    """The last offset of the window; Unanswerable where all of it lies outside what is known."""
    if is_after(since, until):
        raise Unanswerable("the window ends before it begins: since is after until")
    inside = [leg for leg in history.legs if _first(leg, since) <= _last(leg, until)]
    if not inside and (since is not None or until is not None):
        raise Unanswerable(f"nothing is known of that time: these files know {history.range}")
    known = history.legs[0]
    early = (isinstance(since, AtOffset) and since.offset < known.first_offset) or (
        isinstance(since, AtTime) and since.time < known.first_time
    )
    if early:
        begin = show_moment(known.first_offset, known.first_time)
        reason = f"nothing is known before {begin}: older files are gone"
        if known.base is None and known.complete:
            reason = f"the log begins at {begin}: there was nothing before"
        history.trouble.append(Trouble(reason, harmless=True))
    return _last(history.legs[-1], until)


def never_told(history: History, wanted: Filter) -> list[str]:
    """Of a filter, what nothing in these files was ever about: where an answer is empty, most
    likely somebody mistyped it."""
    seen = [told.change for told in story(history, None, None, Filter(minor=True))]
    each_alone = [
        *((f"topic {each}", Filter(topics=(each,), minor=True)) for each in wanted.topics),
        *((f"broker {each}", Filter(brokers=(each,), minor=True)) for each in wanted.brokers),
        *((f"kind {each}", Filter(kinds=(each,))) for each in wanted.kinds),
    ]
    said = []
    for what, alone in each_alone:
        if not any(map(alone.wants, seen)):
            kinds = ", ".join(sorted({change.kind for change in seen})) if alone.kinds else ""
            there = f"; there are: {kinds}" if kinds else ""
            said.append(f"these files tell nothing of {what}, at any time{there}")
    return said


def bridged(history: History, before: MetadataImage, leg: Leg, wanted: Filter) -> Iterator[Told]:
    """What a snapshot behind a gap shows: what happened, though not when."""
    after = history.base_image(leg.base, before)
    quorum = history.quorum(*history.find(AtOffset(before.offset)))
    voting = quorum_difference(quorum, history.quorum(leg, leg.first_offset))
    change = Change(
        kind="log.gap",
        subject="log",
        text=(
            f"offsets {before.offset + 1} to {leg.first_offset} are missing from the log; until "
            "here this has changed, in an unknown order:"
        ),
        before=before.offset + 1,
        after=leg.first_offset,
    )
    yield Told(offset=leg.first_offset, time=leg.first_time, change=change)
    for found in chain(voting, difference(before, after)):
        if wanted.wants(found):
            yield Told(offset=leg.first_offset, time=leg.first_time, change=found)


def _first(leg: Leg, since: Moment | None) -> int:
    match since:
        case None:
            return leg.batches[0].base_offset if leg.batches else leg.last_offset + 1
        case AtOffset(offset=offset):
            return max(offset, leg.batches[0].base_offset) if leg.batches else leg.last_offset + 1
        case AtTime(time=time):
            # The first batch at or after the time.
            at = next((n for n, each in enumerate(leg.times) if each >= time), None)
            return leg.last_offset + 1 if at is None else leg.batches[at].base_offset
    raise AssertionError(since)


def _last(leg: Leg, until: Moment | None) -> int:
    match until:
        case None:
            return leg.last_offset
        case AtOffset(offset=offset):
            return min(offset, leg.last_offset)
        case AtTime(time=time):
            if time < leg.first_time:
                return leg.first_offset - 1
            return leg.offset_at(time)
    raise AssertionError(until)

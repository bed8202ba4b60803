"""The story of one partition up to a moment: its own changes, and what its brokers went through."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import msgspec

from kraftline.inspect.cluster.health import MIN_ISR, NOT_PREFERRED, Health
from kraftline.inspect.cluster.printing import as_object
from kraftline.inspect.cluster.state import State
from kraftline.inspect.cluster.story import Filter, bridged
from kraftline.inspect.cluster.telling import Teller, Told
from kraftline.inspect.history import History, Unanswerable, show_time
from kraftline.inspect.history.moments import Moment
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER, ConfigResource
from kraftline.metadata.partition import NO_LEADER, PartitionRegistration
from kraftline.metadata.words import resource_name
from kraftline.metadata.words.values import brokers as named
from kraftline.metadata.words.values import numbers
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.types import Message

# Of a broker's events, those that a partition feels.
_FELT = (
    "broker.fenced",
    "broker.unfenced",
    "broker.restarted",
    "broker.registered",
    "broker.unregistered",
    "broker.shutting-down",
    "broker.directory.offline",
)
_ALL_BROKERS = resource_name(ConfigResource(BROKER, ""))
# Of its own, those that say which replicas it has from then on.
_SETTLED = ("reassignment.completed", "reassignment.cancelled", "replicas.changed")
_DOWN = ("broker.fenced", "broker.unregistered", "broker.shutting-down")


class Story(msgspec.Struct, frozen=True):
    """`state` is how the partition stood at the end, None if it was not there; `sentence` says
    it. `troubles` are as in the image."""

    name: str
    offset: int
    time: int
    events: tuple[Told, ...]
    sentence: str
    state: PartitionRegistration | None
    troubles: tuple[str, ...] = ()


def split_name(name: str) -> tuple[str, int]:
    """`orders-3` is partition 3 of orders; ValueError where it is no such name."""
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{name!r} is not a partition; give it like orders-3")
    return topic, int(digits)


def why(
    history: History, topic: str, partition: int, moment: Moment | None, *, quick: bool = False
) -> Story:
    """Replay up to the moment and keep what matters to one partition. `quick`: from the newest
    snapshot before it, and what was before that is not told."""
    name = f"{topic}-{partition}"
    last_leg, last = history.find(moment)
    telling = _Telling(topic, partition)
    image: MetadataImage | None = None
    wanted = Filter(minor=True)
    for leg in [last_leg] if quick else history.legs:
        if image is not None:
            telling.take(list(bridged(history, image, leg, wanted)))
        end = last if leg is last_leg else leg.last_offset
        base, first = history.start(leg, end, quick=quick)
        before = history.base_image(base)
        telling.begin(before)
        state = State(before)
        teller = Teller(state, history.faults(leg), telling.matters)
        for effect, time in history.effects(leg, first, end):
            told = teller.tell(effect, time)
            if told:
                # What happened to a broker comes before what that did to the partition, though
                # the controller may write it behind.
                told.sort(key=lambda one: (not one.change.kind.startswith("broker."), one.offset))
                telling.take(told)
        image = state.delta.apply(history.provenance(leg, end))
        if leg is last_leg:
            break
    assert image is not None
    found = image.topics.named(topic)
    registration = None if found is None else found.partition(partition)
    if registration is None and not telling.seen:
        when = "since the newest snapshot" if quick else "up to that moment"
        raise Unanswerable(_no_such(image, topic, partition, name, when))
    sentence, troubles = _sentence(image, topic, name, registration, telling)
    return Story(
        name, last, last_leg.time_at(last), telling.result(), sentence, registration, troubles
    )


def as_answer(story: Story) -> dict[str, Any]:
    """The story as one object for programs."""
    state = story.state
    return {
        "partition": story.name,
        "offset": story.offset,
        "time": story.time,
        "sentence": story.sentence,
        "state": None
        if state is None
        else {
            "leader": None if state.leader == NO_LEADER else state.leader,
            "leader_epoch": state.leader_epoch,
            "replicas": state.replicas,
            "isr": state.isr,
            "elr": state.elr,
            "adding": state.adding_replicas,
            "removing": state.removing_replicas,
            "troubles": story.troubles,
        },
        "events": [as_object(one) for one in story.events],
    }


class _Telling:
    """Gathers events; those of brokers only while they are replicas of the partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.events: list[Told] = []
        self.seen = False
        self.replicas: set[int] = set()
        # Also of brokers that are not replicas yet.
        self.down_since: dict[int, Told] = {}

    def begin(self, image: MetadataImage) -> None:
        found = image.topics.named(self.topic)
        if found is not None:
            registration = found.partition(self.partition)
            if registration is not None:
                self.replicas |= set(registration.replicas)
                self.seen = True

    def matters(self, message: Message) -> bool:
        """Records of other partitions are replayed and not told: most of a log is theirs."""
        if isinstance(message, PartitionChangeRecord | PartitionRecord):
            return message.partition_id == self.partition
        return True

    def take(self, told: list[Told]) -> None:
        for one in told:
            change = one.change
            if change.topic == self.topic:
                self._own(one)
            elif change.kind.startswith("broker."):
                self._broker(one)
            elif change.kind == "log.gap" or (self.replicas and self._is_felt_by_all(one)):
                self.events.append(one)

    def _own(self, one: Told) -> None:
        change = one.change
        if change.partition not in (None, self.partition) or not self._is_of_interest(one):
            return
        if change.kind in ("topic.created", "partitions.added"):
            replicas = change.after["replicas"].get(str(self.partition))
            if replicas is None:
                return
            self.replicas |= set(replicas)
            self.seen = True
        self.seen |= change.partition is not None
        if change.kind in _SETTLED:
            self.replicas = set(change.after)
        elif change.kind == "topic.deleted":
            self.replicas.clear()
        else:
            self.replicas |= set(change.brokers)
        self.events.append(one)

    def _is_of_interest(self, one: Told) -> bool:
        change = one.change
        if change.kind.startswith("config."):
            return MIN_ISR in change.text or "unclean" in change.text
        if change.kind.startswith("acl."):
            return False
        return not change.minor

    def _is_felt_by_all(self, one: Told) -> bool:
        """Defaults of topics that do not say otherwise."""
        change = one.change
        return change.subject == _ALL_BROKERS and self._is_of_interest(one)

    def _broker(self, one: Told) -> None:
        (broker,) = one.change.brokers
        if one.change.kind in _DOWN:
            self.down_since.setdefault(broker, one)
        elif one.change.kind in ("broker.unfenced", "broker.registered"):
            self.down_since.pop(broker, None)
        if broker in self.replicas and one.change.kind in _FELT:
            self.events.append(one)

    def result(self) -> tuple[Told, ...]:
        return tuple(self.events)


def _sentence(
    image: MetadataImage,
    topic: str,
    name: str,
    now: PartitionRegistration | None,
    telling: _Telling,
) -> tuple[str, tuple[str, ...]]:
    if now is None:
        return f"{name} does not exist at that moment.", ()
    health = Health(image)
    troubles = health.of(topic, now)
    if now.leader == NO_LEADER:
        said = f"{name} has no leader: nobody can write to it or read from it"
    else:
        said = f"{name} is led by {now.leader} in leader epoch {now.leader_epoch}"
        if NOT_PREFERRED in troubles:
            said += f" (preferred would be {now.replicas[0]})"
    missing = [each for each in now.replicas if each not in now.isr]
    if not missing:
        said += f", and all its replicas are in sync: {numbers(now.isr)}"
    else:
        said += f"; in sync: {numbers(now.isr)} of {numbers(now.replicas)}"
    parts = [said + "."]
    parts += [_missing(image, broker, now, telling) for broker in missing]
    if now.elr:
        parts.append(f"Eligible to lead though out of sync: {numbers(now.elr)}.")
    if now.adding_replicas or now.removing_replicas:
        target = [each for each in now.replicas if each not in now.removing_replicas]
        parts.append(f"It is being moved to {named(target)}.")
    least = health.min_isr(topic)
    # Brokers ask for no more than there are replicas.
    if len(now.isr) < min(least, len(now.replicas)) and now.leader != NO_LEADER:
        parts.append(
            f"min.insync.replicas is {least}: producers that want acks from all are refused."
        )
    return " ".join(parts), troubles


def _missing(
    image: MetadataImage, broker: int, now: PartitionRegistration, telling: _Telling
) -> str:
    registration = image.cluster.brokers.get(broker)
    since = telling.down_since.get(broker)
    when = "" if since is None else f" since {show_time(since.time)} (offset {since.offset})"
    if registration is None:
        return f"Broker {broker} is not registered{when}."
    directory = now.directory(broker)
    offline = directory is not None and not registration.has_online_directory(directory)
    more = ", and its directory there is offline" if offline else ""
    if registration.in_controlled_shutdown:
        return f"Broker {broker} has been shut down{when}{more}."
    if registration.fenced:
        return f"Broker {broker} is fenced{when}{more}."
    if offline:
        return f"Broker {broker} is in service, but its directory there is offline."
    return f"Broker {broker} is in service and has not caught up."


def _no_such(image: MetadataImage, topic: str, partition: int, name: str, when: str) -> str:
    found = image.topics.named(topic)
    if found is not None:
        return f"there is no {name}: {topic} has partitions 0 to {len(found.partitions) - 1}"
    near = get_close_matches(topic, list(image.topics.ids), 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"there is no topic {topic}, and none was there {when}{hint}"

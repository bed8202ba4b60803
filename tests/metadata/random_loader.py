"""Stories of a loader at random, in which ours does what Kafka's does."""

from __future__ import annotations

import copy
from random import Random

from kraftline.metadata.features import from_level
from kraftline.metadata.loader import MetadataBatch, image_of
from kraftline.metadata.write_options import Versioned
from kraftline.schema import metadata as m
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.types import Message
from tests.metadata.generated import LogMaker
from tests.metadata.loader_telling import GENERATOR, Story
from tests.metadata.loading import ABORT, BEGIN, END, VERSION, topic

_NAMES = ("p", "q", "r", "q#2")
_LEVEL = 30


class StoryMaker:
    """Makes one story. With `aborts_anywhere` transactions are aborted where more follows in the
    same commit, which Kafka does not take well: `cut` ends the commit there."""

    def __init__(self, seed: int, *, aborts_anywhere: bool = False, cut: bool = False) -> None:
        self._rng = Random(seed)
        self._anywhere = aborts_anywhere
        self._cut = cut
        self._maker = log_maker(self._rng)
        # What the log was when a transaction began, unless that was amid records that belong
        # together: such a one is not aborted.
        self._before: LogMaker | None = None
        self._inside = 0  # 1 behind Begin, 2 behind a record of the transaction
        self.story = Story()

    def make(self, steps: int = 14) -> Story:
        rng, story = self._rng, self.story
        if rng.random() < 0.5:
            story.install(*rng.sample(_NAMES[:3], 2))
        behind = rng.choice((None, None, 30, 60))
        if behind is not None or rng.random() < 0.3:
            story.high(behind)
        story.commit([VERSION, *self._records()])
        for _ in range(steps):
            self._step()
            if rng.random() < 0.15:
                story.together(min(rng.randrange(2, 5), len(story.steps)))
        return story

    def commits(self, count: int = 12) -> Story:
        """A story of nothing else, with one publisher."""
        self.story.install("p")
        self.story.commit([VERSION, *self._records()])
        for _ in range(count):
            self._commit()
        return self.story

    def _step(self) -> None:
        rng, story = self._rng, self.story
        kinds = {
            "commit": 14,
            "nothing": 1,
            "snapshot": 1,
            "leader": 2,
            "install": 3,
            "remove": 1,
            "fails": 2,
            "tick": 1,
            "follow": 1,
        }
        (kind,) = rng.choices(list(kinds), list(kinds.values()))
        match kind:
            case "commit":
                self._commit()
            case "nothing":
                story.commit()
            case "snapshot":
                self._snapshot()
            case "leader":
                story.leader(rng.choice((None, 1, 2)), rng.randrange(9))
            case "install":
                story.install(*rng.choice((rng.sample(_NAMES[:3], rng.randrange(3)), _NAMES[3:])))
            case "remove":
                story.remove(rng.choice(_NAMES))
            case "fails":
                story.fails(rng.choice(_NAMES), rng.choice(("", "update", "controller", "close")))
            case "tick":
                story.tick(rng.choice((1, 99, 100)))
            case "follow":
                story.follows = True

    def _commit(self) -> None:
        rng, story = self._rng, self.story
        found: list[bytes] = []
        for _ in range(rng.randrange(1, 5)):
            if rng.random() < 0.1:
                story.epoch += 1
            if rng.random() < 0.1:
                found.append(story.control(KRaftVersionRecord(kraft_version=rng.randrange(2))))
            entries: list[Message | Versioned] = []
            for _ in range(rng.randrange(1, 4)):
                self._happen(entries)
                if self._cut and entries[-1] is ABORT:
                    story.commit(*found, entries)
                    found, entries = [], []
            if entries:
                found.append(story.batch(*entries))
        if self._inside and self._before is not None and rng.random() < 0.3:
            self._abort()
            found.append(story.batch(ABORT))
        if found:
            story.commit(*found)

    def _happen(self, entries: list[Message | Versioned]) -> None:
        """Add records of one thing that happens, and markers among them."""
        before: LogMaker | None = copy.deepcopy(self._maker)
        for record in self._records():
            marker = self._marker(before)
            if marker is not None:
                entries.append(marker)
            if marker is ABORT:
                return  # the rest was made for a log that has just been taken back
            before = None
            entries.append(record)
            if self._inside:
                self._inside = 2

    def _marker(self, before: LogMaker | None) -> Message | None:
        """Now and then a marker, and rarely one that has no place there."""
        rng = self._rng
        if self._inside:
            if rng.random() < 0.15:
                self._inside = 0
                return END
            if self._anywhere and self._before is not None and rng.random() < 0.15:
                self._abort()
                return ABORT
            return BEGIN if self._inside == 2 and rng.random() < 0.03 else None
        if rng.random() < 0.15:
            self._before = before
            self._inside = 1
            return BEGIN
        return END if rng.random() < 0.03 else None

    def _abort(self) -> None:
        """Go on from what there was before the transaction."""
        assert self._before is not None
        self._maker, self._before = self._before, None
        self._maker.rng = self._rng
        self._inside = 0

    def _records(self) -> list[Message | Versioned]:
        found: list[Message | Versioned] = [*records_of(self._maker)]
        if self._rng.random() < 0.1:
            found.append(self._odd())
        return found

    def _odd(self) -> Message:
        """A record that is refused, and by Kafka without harm to the others."""
        nobody = self._maker.uuid()
        odd: list[Message] = [
            m.FeatureLevelRecord(name="metadata.version", feature_level=6),
            m.RemoveTopicRecord(topic_id=nobody),
            m.RemoveAccessControlEntryRecord(id=nobody),
            m.FenceBrokerRecord(id=99, epoch=1),
            m.ClearElrRecord(topic_name="no such topic"),
        ]
        for topic_id, partitions in self._maker.topics.values():
            odd.append(
                m.PartitionChangeRecord(partition_id=len(partitions), topic_id=topic_id, leader=1)
            )
        return self._rng.choice(odd)

    def _snapshot(self) -> None:
        """A snapshot of another log, further on."""
        story = self.story
        self._maker = log_maker(self._rng)
        self._inside = 0
        records = [record for _ in range(8) for record in records_of(self._maker)]
        messages = [VERSION, *(message for message, _ in records)]
        image = image_of([MetadataBatch(0, len(messages) - 1, 1, 0, 0, messages)])
        end = story.offset + self._rng.randrange(1, 20)
        snapshot = list(image.write(image.write_options()))
        story.snapshot(end, *snapshot, epoch=story.epoch, kraft_version=self._rng.randrange(2))


def log_maker(rng: Random) -> LogMaker:
    maker = LogMaker(rng, version=from_level(_LEVEL))
    maker.register()
    return maker


def records_of(maker: LogMaker) -> list[Versioned]:
    """What happens next, without transactions, and without what Kafka does not take well if much
    happens in one publication: configs of topics, which stay when their topic is created and
    removed in it, and SCRAM users, who get lost when they take the place of the last one."""
    while True:
        found: list[Versioned] = []
        for record, version in maker.batch():
            match record:
                case m.BeginTransactionRecord(name="lost"):
                    break
                case m.BeginTransactionRecord() | m.EndTransactionRecord():
                    continue
                case m.ConfigRecord(resource_type=2):
                    continue
                case m.UserScramCredentialRecord() | m.RemoveUserScramCredentialRecord():
                    continue
            found.append((record, version))
        if found:
            return found


def generator_story(seed: int, steps: int = 20) -> Story:
    """What may make a snapshot generator write, or not. No commit is published twice where the
    first would be written: when Kafka's thread is done with that is anybody's guess."""
    rng = Random(seed)
    story = Story(
        max_bytes=rng.choice((100, 300, 1000)), max_interval_ms=rng.choice((0, 1000, 60_000))
    )
    story.commit([VERSION])
    story.install(GENERATOR, "p")
    held = False
    for number in range(steps):
        records = [topic(f"{number}-{n}") for n in range(rng.randrange(1, 8))]
        match rng.randrange(12):
            case 0:
                story.tick(rng.choice((1, 999, 1000, 59_000, 60_000)))
            case 1:
                story.snapshot(story.offset + 3, VERSION)
            case 2:
                held = not held
                story.emitter("held" if held else rng.choice(("ready", "fails")))
            case 3 if number > steps - 4:
                story.disable("metadata loading fault")
            case 3:
                story.commit()
            case 4 | 5:
                story.commit([*records, BEGIN, *records, END])
            case _:
                story.commit(*([record] for record in records))
    return story

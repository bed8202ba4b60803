"""What happened to topics as a whole: created, deleted, grown, or another behind a gap."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from kraftline.inspect.cluster.difference import difference
from kraftline.metadata import words
from kraftline.metadata.features import VERSIONS
from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.cluster import ClusterImage
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.partition import PartitionRegistration
from kraftline.metadata.words.values import HIDDEN
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.around import Around, Row
from kraftline.spark.history.by_state import broker
from kraftline.spark.history.lives import Life, OverGap
from kraftline.spark.history.rows import Rows

Registrations = dict[int, PartitionRegistration]  # by number of partition
_WHOLLY: Final = WriteOptions(VERSIONS[-1], elr=True)


class New(Struct):
    """Partitions that came with one unit: where it begins, the first of them, and how many
    replicas each has."""

    offset: int
    unit: int | None
    at_offset: int
    at_time: int | None
    epoch: int | None
    partition: int
    replicas: tuple[int, ...]
    factors: list[int]


class Topic(Struct):
    """A topic whose partitions are being replayed: its lives by leg, partitions that came and how
    many replicas those had that were there last, by the place of the life in the log; and its
    partitions on both sides of a gap, by the leg before that."""

    cluster_id: str
    topic_id: str
    lives: dict[int, list[Life]] = {}
    over_gap: list[OverGap] = []
    new: dict[tuple[int, int, int], list[New]] = {}
    last: dict[tuple[int, int, int], list[int]] = {}
    was: dict[int, Registrations] = {}
    now: dict[int, Registrations] = {}

    def tell(self, around: Around, rows: Rows) -> None:
        """All changes of the topic itself, as rows."""
        for leg, lives in self.lives.items():
            for life in lives:
                self._life(life, around, leg, rows)
        for gap in self.over_gap:
            self._gap(gap, around, rows)

    def _life(self, life: Life, around: Around, number: int, rows: Rows) -> None:
        leg = around.legs[number].leg
        key = number, life.offset, life.index
        came = sorted(self.new.get(key, ()), key=lambda new: new.offset)
        units = {new.unit: new for new in came}
        lasting = not life.removed or life.next_unit != life.began_unit
        if life.began_unit is not None and lasting:
            created = units.get(life.began_unit)
            shape = _shape([] if created is None else created.factors)
            configs = {name: value or "" for name, value in life.configs}
            change = words.topic_created(life.topic, Uuid.parse(life.topic_id), shape, configs)
            after = {"topic_id": life.topic_id, "partitions": len(shape)}
            at = life.began_at, life.began_time
            rows.change(replace(change, after=after), leg, at, life.began_epoch)
        total = 0
        for unit, new in units.items():
            count = len(new.factors)
            total += count
            gone_again = life.removed and unit == life.next_unit
            if unit is not None and unit != life.began_unit and not gone_again:
                added = dict.fromkeys(
                    range(new.partition, new.partition + count), _partition(new.replicas)
                )
                change = words.partitions_added(life.topic, added, total)
                at = new.at_offset, new.at_time
                rows.change(replace(change, after={"partitions": total}), leg, at, new.epoch)
        if life.removed and life.ended_at is not None:
            shape = _shape(self.last.get(key, []))
            change = words.topic_deleted(life.topic, Uuid.parse(life.topic_id), shape)
            rows.change(change, leg, (life.ended_at, life.ended_time), life.next_epoch)

    def _gap(self, gap: OverGap, around: Around, rows: Rows) -> None:
        was, now = self.was.get(gap.leg, {}), self.now.get(gap.leg, {})
        if gap.topic_was == gap.topic_now and was == now:
            return
        known = around.legs[gap.leg]
        assert known.leg.next_base_offset is not None
        at = known.leg.next_base_offset, known.leg.next_base_time
        pairs = known.brokers_over_gap
        sides = (
            _image(gap, gap.topic_was, was, [one for one, _ in pairs]),
            _image(gap, gap.topic_now, now, [other for _, other in pairs]),
        )
        for change in difference(*sides):
            if not change.kind.startswith("broker."):
                rows.change(change, known.leg, at, None)


def _shape(factors: Iterable[int]) -> Registrations:
    """Partitions of which nothing counts but how many replicas they have."""
    return {number: _of_factor(factor) for number, factor in enumerate(factors)}


@cache
def _of_factor(factor: int) -> PartitionRegistration:
    return _partition(tuple(range(factor)))


def _partition(replicas: tuple[int, ...]) -> PartitionRegistration:
    return PartitionRegistration(replicas, (), (), 0, 0, 0)


def _image(
    gap: OverGap, name: str | None, partitions: Registrations, brokers: Iterable[Row | None]
) -> MetadataImage:
    """An image that has nothing but a topic, and the brokers for causes."""
    known = {each.id: each for each in map(broker, brokers) if each}
    delta = MetadataDelta(MetadataImage(cluster=ClusterImage(Map(known))))
    if name is not None:
        topic_id = Uuid.parse(gap.topic_id)
        delta.replay(TopicRecord(name=name, topic_id=topic_id))
        for number in sorted(partitions):
            delta.replay(partitions[number].to_record(topic_id, number, _WHOLLY))
        # Configs of a topic that was there before are told of by themselves.
        for key, value, is_secret in gap.configs if gap.topic_was is None else ():
            # With a value that is not kept, since it would not be shown either.
            shown = HIDDEN if is_secret else value
            delta.replay(
                ConfigRecord(resource_type=TOPIC, resource_name=name, name=key, value=shown)
            )
    return delta.apply(Provenance())

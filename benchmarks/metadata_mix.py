"""What a large cluster's controller writes: 60 brokers, thousands of topics, brokers that restart.

Most batches are small (a heartbeat's NoOp, an ISR change); most records come in large ones (topics
being created, a broker lost with all its leaderships).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kraftline.records.control import build_control_batch
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema import metadata as m
from kraftline.schema.control.leader_change_message import LeaderChangeMessage, Voter
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint, BrokerFeature
from kraftline.schema.types import Message, Uuid

_BROKERS = 60
_DIRECTORIES = 4
_CONFIGS = (
    ("retention.ms", "604800000"),
    ("cleanup.policy", "compact"),
    ("min.insync.replicas", "2"),
    ("segment.bytes", "536870912"),
    ("max.message.bytes", "2097152"),
)
_TEAMS = ("billing", "search", "orders", "shipping", "identity", "telemetry", "pricing")

Versioned = tuple[Message, int]


@dataclass
class Mix:
    """How many records of each type and version were written, in how many batches."""

    types: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    largest: int = 0


def metadata_batches(records: int, start_ms: int, mix: Mix) -> Iterator[bytes]:
    """Batches with exactly `records` records in all, the leader change at the front included."""
    cluster = _Cluster(random.Random(43))
    voters = tuple(Voter(voter_id=3000 + i) for i in range(3))
    change = LeaderChangeMessage(leader_id=3000, voters=voters, granting_voters=voters[:2])
    yield build_control_batch([change], base_offset=0, timestamp=start_ms, partition_leader_epoch=1)
    _note(mix, "LeaderChangeMessage (control)", 1)
    mix.batches, offset, now = 1, 1, start_ms
    events = cluster.events(records)
    while offset < records:
        batch = next(events)[: records - offset]
        now += cluster.rng.choice((0, 3, 20, 180, 500))
        encoded = [
            Record(offset + i, now, None, encode_record(*each)) for i, each in enumerate(batch)
        ]
        yield build_batch(encoded, partition_leader_epoch=1)
        for message, version in batch:
            _note(mix, f"{type(message).__name__} v{version}", 1)
        mix.batches += 1
        mix.largest = max(mix.largest, len(batch))
        offset += len(batch)


def _note(mix: Mix, name: str, count: int) -> None:
    mix.types[name] += count


class _Cluster:
    """Enough state that records refer to topics, partitions and brokers that are there."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.topics: list[tuple[str, Uuid, int]] = []
        self.directories = [
            tuple(self._uuid() for _ in range(_DIRECTORIES)) for _ in range(_BROKERS)
        ]
        self.epoch = 100
        self.epochs: dict[int, int] = {}  # of each broker's registration
        self.producer_ids = 0
        self.acls: list[Uuid] = []
        self.elr = False  # eligible leader replicas: records of version 2

    def events(self, records: int) -> Iterator[list[Versioned]]:
        yield [(m.BeginTransactionRecord(name="Bootstrap records"), 0)]
        yield [
            (m.FeatureLevelRecord(name="metadata.version", feature_level=29), 0),
            (m.FeatureLevelRecord(name="group.version", feature_level=1), 0),
            (m.EndTransactionRecord(), 0),
        ]
        for broker in range(_BROKERS):
            yield [(self._registration(broker), 3)]
            yield [(m.UnfenceBrokerRecord(id=broker, epoch=self.epochs[broker]), 0)]
        yield from self._create_topics()
        kinds = (
            (self._heartbeat, 30),
            (self._isr_changes, 45),
            (self._create_topics, 6),
            (self._broker_restarts, 2),
            (self._reassign, 3),
            (self._configure, 8),
            (self._grant, 4),
            (self._remove_topic, 2),
            (self._producers, 6),
        )
        events, weights = zip(*kinds, strict=True)
        done = 0
        while True:
            if not self.elr and done > records // 2:
                self.elr = True
                name = "eligible.leader.replicas.version"
                yield [(m.FeatureLevelRecord(name=name, feature_level=1), 0)]
            for event in self.rng.choices(events, weights, k=64):
                for batch in event():
                    done += len(batch)
                    yield batch

    @property
    def _version(self) -> int:
        return 2 if self.elr else 1

    def _uuid(self) -> Uuid:
        return Uuid(self.rng.randbytes(16))

    def _registration(self, broker: int) -> m.RegisterBrokerRecord:
        self.epoch += self.rng.randrange(1, 50)
        self.epochs[broker] = self.epoch
        host = f"broker-{broker:03d}.kafka.eu-central.example.com"
        return m.RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=self._uuid(),
            broker_epoch=self.epoch,
            end_points=(
                BrokerEndpoint(name="INTERNAL", host=host, port=9092),
                BrokerEndpoint(name="CLIENTS", host=host, port=9093, security_protocol=3),
            ),
            features=(
                BrokerFeature(
                    name="metadata.version", min_supported_version=7, max_supported_version=29
                ),
                BrokerFeature(name="group.version", max_supported_version=1),
                BrokerFeature(name="transaction.version", max_supported_version=2),
            ),
            rack=f"zone-{broker % 3}",
            log_dirs=self.directories[broker],
        )

    def _heartbeat(self) -> Iterator[list[Versioned]]:
        yield [(m.NoOpRecord(), 0)]

    def _isr_changes(self) -> Iterator[list[Versioned]]:
        """A leader reports: usually one partition, at times a dozen."""
        count = self.rng.choice((1, 1, 1, 1, 2, 3, 5, 14))
        yield [(self._change(isr_only=True), self._version) for _ in range(count)]

    def _change(self, *, isr_only: bool, lost: int = -1) -> m.PartitionChangeRecord:
        _, topic, partitions = self.rng.choice(self.topics)
        replicas = self._replicas()
        isr = tuple(r for r in replicas if r != lost)[: self.rng.choice((2, 2, 3, 3, 3))]
        spare = replicas[len(isr) :] if self.elr and len(isr) < 2 else None
        return m.PartitionChangeRecord(
            partition_id=self.rng.randrange(partitions),
            topic_id=topic,
            isr=isr,
            leader=-2 if isr_only else isr[0],
            eligible_leader_replicas=spare,
        )

    def _replicas(self) -> tuple[int, ...]:
        first, step = self.rng.randrange(_BROKERS), self.rng.randrange(1, 20)
        return first, (first + step) % _BROKERS, (first + 2 * step) % _BROKERS

    def _create_topics(self) -> Iterator[list[Versioned]]:
        """Some topics with their partitions, in batches of some hundred, as one transaction."""
        yield [(m.BeginTransactionRecord(name="create topics"), 0)]
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            name = f"{self.rng.choice(_TEAMS)}.events.v{self.rng.randrange(100_000)}"
            topic, partitions = self._uuid(), self.rng.choice((12, 24, 48, 96, 192, 480))
            batch: list[Versioned] = [(m.TopicRecord(name=name, topic_id=topic), 0)]
            for key, value in self.rng.sample(_CONFIGS, self.rng.randrange(3)):
                batch.append(
                    (m.ConfigRecord(resource_type=2, resource_name=name, name=key, value=value), 0)
                )
            batch += [(self._partition(topic, p), self._version) for p in range(partitions)]
            self.topics.append((name, topic, partitions))
            yield batch
        yield [(m.EndTransactionRecord(), 0)]

    def _partition(self, topic: Uuid, partition: int) -> m.PartitionRecord:
        replicas = self._replicas()
        return m.PartitionRecord(
            partition_id=partition,
            topic_id=topic,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(self.rng.choice(self.directories[r]) for r in replicas),
        )

    def _broker_restarts(self) -> Iterator[list[Versioned]]:
        """Shut down in order, lose every leadership, come back, win some of it again."""
        broker = self.rng.randrange(_BROKERS)
        epoch = self.epochs[broker]
        change = m.BrokerRegistrationChangeRecord(
            broker_id=broker, broker_epoch=epoch, in_controlled_shutdown=1
        )
        yield [(change, 2)]
        for _ in range(self.rng.randrange(1, 6)):
            yield self._moves(self.rng.randrange(50, 400), broker)
        fence = m.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epoch, fenced=1)
        old: Versioned = (m.FenceBrokerRecord(id=broker, epoch=epoch), 0)
        yield [old if self.rng.random() < 0.2 else (fence, 2), *self._moves(40, broker)]
        yield [(self._registration(broker), 3)]
        unfence = m.BrokerRegistrationChangeRecord(
            broker_id=broker, broker_epoch=self.epochs[broker], fenced=-1
        )
        yield [(unfence, 2), *self._moves(60, -1)]

    def _moves(self, count: int, lost: int) -> list[Versioned]:
        return [(self._change(isr_only=False, lost=lost), self._version) for _ in range(count)]

    def _reassign(self) -> Iterator[list[Versioned]]:
        _, topic, partitions = self.rng.choice(self.topics)
        batch: list[Versioned] = []
        for partition in range(min(partitions, 20)):
            old, new = self._replicas(), self._replicas()
            both = tuple(dict.fromkeys((*new, *old)))
            record = m.PartitionChangeRecord(
                partition_id=partition,
                topic_id=topic,
                replicas=both,
                removing_replicas=tuple(r for r in old if r not in new),
                adding_replicas=tuple(r for r in new if r not in old),
                directories=tuple(self.rng.choice(self.directories[r]) for r in both),
            )
            batch.append((record, self._version))
        yield batch

    def _configure(self) -> Iterator[list[Versioned]]:
        name, _, _ = self.rng.choice(self.topics)
        key, value = self.rng.choice(_CONFIGS)
        yield [(m.ConfigRecord(resource_type=2, resource_name=name, name=key, value=value), 0)]

    def _grant(self) -> Iterator[list[Versioned]]:
        batch: list[Versioned] = []
        for operation in self.rng.sample((3, 4, 8), self.rng.randrange(1, 4)):
            entry = m.AccessControlEntryRecord(
                id=self._uuid(),
                resource_type=2,
                resource_name=f"{self.rng.choice(_TEAMS)}.",
                pattern_type=4,
                principal=f"User:service-{self.rng.randrange(500)}",
                host="*",
                operation=operation,
                permission_type=3,
            )
            self.acls.append(entry.id)
            batch.append((entry, 0))
        if len(self.acls) > 200:
            batch.append((m.RemoveAccessControlEntryRecord(id=self.acls.pop()), 0))
        yield batch

    def _remove_topic(self) -> Iterator[list[Versioned]]:
        if len(self.topics) > 50:
            _, topic, _ = self.topics.pop(self.rng.randrange(len(self.topics)))
            yield [(m.RemoveTopicRecord(topic_id=topic), 0)]

    def _producers(self) -> Iterator[list[Versioned]]:
        self.producer_ids += 1000
        broker = self.rng.randrange(_BROKERS)
        record = m.ProducerIdsRecord(
            broker_id=broker, broker_epoch=self.epoch, next_producer_id=self.producer_ids
        )
        yield [(record, 0)]

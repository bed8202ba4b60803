"""Logs that a controller could have written, made at random.

`LogMaker` keeps just enough of the state that its records make sense; `odd_records` are those
that no controller writes and that a replay must refuse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from kraftline.metadata.features import MetadataVersion, from_level
from kraftline.metadata.write_options import Versioned
from kraftline.schema import metadata as m
from kraftline.schema.metadata.client_quota_record import EntityData
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint, BrokerFeature
from kraftline.schema.metadata.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
)
from kraftline.schema.types import Message, Uuid

LEVELS = (7, 8, 11, 14, 15, 17, 22, 23, 26, 30)
_KEYS = ("retention.ms", "cleanup.policy", "min.insync.replicas", "segment.bytes")
_NAMES = ("orders", "payments", "clicks", "ümlaut", "a.b_c-d")


@dataclass
class LogMaker:
    """Makes one log, a batch at a time."""

    rng: Random
    version: MetadataVersion = from_level(7)
    brokers: dict[int, tuple[int, tuple[Uuid, ...]]] = field(default_factory=dict)
    controllers: set[int] = field(default_factory=set)
    topics: dict[str, tuple[Uuid, list[tuple[int, ...]]]] = field(default_factory=dict)
    acls: list[Uuid] = field(default_factory=list)
    epoch: int = 0
    uuids: int = 0
    elr: bool = False

    def log(self, batches: int) -> list[list[Versioned]]:
        out = [self.raise_version()]
        out += [self.register() for _ in range(3)]
        out += [self.batch() for _ in range(batches)]
        return [batch for batch in out if batch]

    def batch(self) -> list[Versioned]:
        """One thing that happens; now and then a transaction around it, which may be aborted."""
        things = (
            (self.create_topic, 6),
            (self.change_partitions, 14),
            (self.remove_topic, 3),
            (self.configure, 6),
            (self.quota, 4),
            (self.grant, 3),
            (self.scram, 3),
            (self.token, 2),
            (self.register, 2),
            (self.change_broker, 4),
            (self.register_controller, 1),
            (self.clear_elr, 2),
            (self.feature, 2),
            (self.raise_version, 1),
            (self.producer_ids, 2),
            (self.nothing, 2),
        )
        calls, weights = zip(*things, strict=True)
        (call,) = self.rng.choices(calls, weights)
        batch: list[Versioned] = call()
        if batch and self.version.metadata_transaction_supported and self.rng.random() < 0.1:
            batch = [(m.BeginTransactionRecord(name="t"), 0), *batch, (m.EndTransactionRecord(), 0)]
        if self.version.metadata_transaction_supported and self.rng.random() < 0.05:
            batch += self.aborted()
        return batch

    def aborted(self) -> list[Versioned]:
        """Records that have no effect, on things that are there."""
        inside: list[Versioned] = [(m.TopicRecord(name="never", topic_id=self.uuid()), 0)]
        for _, (topic_id, _) in list(self.topics.items())[:2]:
            inside.append((m.RemoveTopicRecord(topic_id=topic_id), 0))
        begin, abort = m.BeginTransactionRecord(name="lost"), m.AbortTransactionRecord(reason="why")
        return [(begin, 0), *inside, (abort, 0)]

    def uuid(self) -> Uuid:
        # The count keeps them apart, however small random numbers get.
        self.uuids += 1
        high = self.rng.getrandbits(64).to_bytes(8, "big")
        return Uuid(high + (self.uuids + 1000).to_bytes(8, "big"))

    def raise_version(self) -> list[Versioned]:
        level = self.rng.choice([n for n in LEVELS if n >= self.version.level])
        self.version = from_level(level)
        return [(m.FeatureLevelRecord(name="metadata.version", feature_level=level), 0)]

    def feature(self) -> list[Versioned]:
        rng = self.rng
        name = rng.choice(
            ("group.version", "share.version", "transaction.version", "kraft.version")
        )
        if self.version.elr_supported and rng.random() < 0.5:
            name, self.elr = "eligible.leader.replicas.version", not self.elr
            return [(m.FeatureLevelRecord(name=name, feature_level=int(self.elr)), 0)]
        return [(m.FeatureLevelRecord(name=name, feature_level=rng.randrange(3)), 0)]

    def register(self) -> list[Versioned]:
        rng = self.rng
        broker, self.epoch = rng.randrange(1, 7), self.epoch + rng.randrange(1, 9)
        supported = self.version.directory_assignment_supported
        dirs = tuple(self.uuid() for _ in range(rng.randrange(3))) if supported else ()
        self.brokers[broker] = self.epoch, dirs
        names = rng.sample(("PLAINTEXT", "SSL", "INTERNAL"), rng.randrange(1, 4))
        record = m.RegisterBrokerRecord(
            broker_id=broker,
            is_migrating_zk_broker=self.version.migration_supported and rng.random() < 0.2,
            incarnation_id=self.uuid(),
            broker_epoch=self.epoch,
            end_points=tuple(
                BrokerEndpoint(
                    name=name,
                    host=f"host{broker}",
                    port=rng.randrange(65536),
                    security_protocol=rng.randrange(4),
                )
                for name in names
            ),
            features=tuple(
                BrokerFeature(name=name, min_supported_version=0, max_supported_version=2)
                for name in rng.sample(("metadata.version", "group.version"), 2)
            ),
            rack=rng.choice((None, "a", "")),
            fenced=rng.random() < 0.7,
            in_controlled_shutdown=rng.random() < 0.1,
            log_dirs=dirs,
            cordoned_log_dirs=rng.choice((None, (), dirs))
            if self.version.cordoned_log_dirs_supported
            else None,
        )
        return [(record, self.version.register_broker_record_version)]

    def change_broker(self) -> list[Versioned]:
        rng = self.rng
        broker = rng.choice(list(self.brokers))
        epoch, _ = self.brokers[broker]
        how = rng.randrange(4)
        if how == 0:
            return [(m.FenceBrokerRecord(id=broker, epoch=epoch), 0)]
        if how == 1:
            return [(m.UnfenceBrokerRecord(id=broker, epoch=epoch), 0)]
        if how == 2 and len(self.brokers) > 2 and rng.random() < 0.3:
            del self.brokers[broker]
            return [(m.UnregisterBrokerRecord(broker_id=broker, broker_epoch=epoch), 0)]
        version = 1
        dirs: tuple[Uuid, ...] = ()
        cordoned: tuple[Uuid, ...] | None = None
        if self.version.directory_assignment_supported:
            version, dirs = 2, tuple(self.uuid() for _ in range(rng.randrange(3)))
        if self.version.cordoned_log_dirs_supported:
            version, cordoned = 3, rng.choice((None, (), dirs))
        record = m.BrokerRegistrationChangeRecord(
            broker_id=broker,
            broker_epoch=epoch,
            fenced=rng.choice((-1, 0, 1)),
            in_controlled_shutdown=rng.choice((0, 0, 1)),
            log_dirs=dirs,
            cordoned_log_dirs=cordoned,
        )
        return [(record, version)]

    def register_controller(self) -> list[Versioned]:
        if not self.version.controller_registration_supported:
            return []
        controller = self.rng.randrange(3000, 3003)
        record = m.RegisterControllerRecord(
            controller_id=controller,
            incarnation_id=self.uuid(),
            zk_migration_ready=self.rng.random() < 0.5,
            end_points=(ControllerEndpoint(name="CONTROLLER", host="c", port=9093),),
            features=(ControllerFeature(name="kraft.version", max_supported_version=1),),
        )
        return [(record, 0)]

    def create_topic(self) -> list[Versioned]:
        name = self.rng.choice(_NAMES)
        if name in self.topics:
            return self.remove_topic(name)
        topic_id = self.uuid()
        batch: list[Versioned] = [(m.TopicRecord(name=name, topic_id=topic_id), 0)]
        if self.rng.random() < 0.4:
            batch.append(self._config(2, name))
        self.topics[name] = topic_id, []
        return batch + [self._partition(name) for _ in range(self.rng.randrange(1, 5))]

    def _partition(self, name: str) -> Versioned:
        rng = self.rng
        topic_id, partitions = self.topics[name]
        replicas = self._some_brokers()
        record = m.PartitionRecord(
            partition_id=len(partitions),
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas[: rng.randrange(1, len(replicas) + 1)],
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=self._directories(replicas) or (),
            eligible_leader_replicas=rng.choice((None, (), replicas[-1:]))
            if self._has_elr
            else None,
        )
        partitions.append(replicas)
        return record, self.version.partition_record_version

    @property
    def _has_elr(self) -> bool:
        return self.version.elr_supported and self.elr

    def _some_brokers(self) -> tuple[int, ...]:
        return tuple(self.rng.sample(range(1, 7), self.rng.randrange(1, 4)))

    def _directories(self, replicas: tuple[int, ...]) -> tuple[Uuid, ...] | None:
        if not self.version.directory_assignment_supported:
            return None
        special = [Uuid(bytes(15) + bytes([n])) for n in range(3)]
        known = [each for _, dirs in self.brokers.values() for each in dirs]
        return tuple(self.rng.choice(special + known) for _ in replicas)

    def change_partitions(self) -> list[Versioned]:
        found = [name for name, (_, partitions) in self.topics.items() if partitions]
        if not found:
            return []
        name = self.rng.choice(found)
        if self.rng.random() < 0.15:
            return [self._partition(name)]
        return [self._change(self.rng.choice(found)) for _ in range(self.rng.randrange(1, 6))]

    def _change(self, name: str) -> Versioned:
        rng = self.rng
        topic_id, partitions = self.topics[name]
        number = rng.randrange(len(partitions))
        replicas, directories = None, None
        if rng.random() < 0.3:
            replicas = partitions[number] = self._some_brokers()
            directories = self._directories(replicas)
        elif rng.random() < 0.2:
            directories = self._directories(partitions[number])
        elr = self._has_elr

        def maybe() -> tuple[int, ...] | None:
            return rng.choice((None, None, (), partitions[number][:1], partitions[number]))

        record = m.PartitionChangeRecord(
            partition_id=number,
            topic_id=topic_id,
            isr=maybe(),
            leader=rng.choice((-2, -2, -1, *partitions[number])),
            replicas=replicas,
            removing_replicas=maybe(),
            adding_replicas=maybe(),
            leader_recovery_state=rng.choice((-1, -1, -1, 0, 1)),
            directories=directories,
            eligible_leader_replicas=maybe() if elr else None,
            last_known_elr=maybe() if elr else None,
        )
        return record, self.version.partition_change_record_version

    def remove_topic(self, name: str | None = None) -> list[Versioned]:
        if not self.topics:
            return []
        name = name or self.rng.choice(list(self.topics))
        topic_id, _ = self.topics.pop(name)
        return [(m.RemoveTopicRecord(topic_id=topic_id), 0)]

    def clear_elr(self) -> list[Versioned]:
        if not self.version.elr_supported:
            return []
        return [(m.ClearElrRecord(topic_name=self.rng.choice(["", *self.topics])), 0)]

    def configure(self) -> list[Versioned]:
        resources = [(4, ""), (4, "1"), (16, "client"), (32, "group")]
        resources += [(2, name) for name in self.topics]
        return [self._config(*self.rng.choice(resources)) for _ in range(self.rng.randrange(1, 4))]

    def _config(self, kind: int, name: str) -> Versioned:
        key, value = self.rng.choice(_KEYS), self.rng.choice((None, "", "1", "compact"))
        return m.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value), 0

    def quota(self) -> list[Versioned]:
        rng = self.rng
        types = rng.choice((("user",), ("client-id",), ("client-id", "user"), ("ip",)))
        entity = tuple(
            EntityData(entity_type=kind, entity_name=rng.choice((None, "", "x", "y")))
            for kind in rng.sample(types, len(types))
        )
        record = m.ClientQuotaRecord(
            entity=entity,
            key=rng.choice(("producer_byte_rate", "request_percentage")),
            value=rng.choice((1.0, 0.5, 1e12)),
            remove=rng.random() < 0.3,
        )
        return [(record, 0)]

    def grant(self) -> list[Versioned]:
        if self.acls and self.rng.random() < 0.4:
            gone = self.acls.pop(self.rng.randrange(len(self.acls)))
            return [(m.RemoveAccessControlEntryRecord(id=gone), 0)]
        self.acls.append(self.uuid())
        record = m.AccessControlEntryRecord(
            id=self.acls[-1],
            resource_type=self.rng.randrange(2, 8),
            resource_name=self.rng.choice(_NAMES),
            pattern_type=self.rng.choice((3, 4)),
            principal="User:x",
            host="*",
            operation=self.rng.randrange(2, 16),
            permission_type=self.rng.choice((2, 3)),
        )
        return [(record, 0)]

    def scram(self) -> list[Versioned]:
        rng = self.rng
        name, mechanism = rng.choice(("x", "y")), rng.choice((1, 2))
        if rng.random() < 0.4:
            return [(m.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism), 0)]
        record = m.UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=rng.randbytes(4),
            stored_key=rng.randbytes(4),
            server_key=rng.randbytes(4),
            iterations=4096,
        )
        return [(record, 0)]

    def token(self) -> list[Versioned]:
        token = self.rng.choice(("t1", "t2"))
        if self.rng.random() < 0.4:
            return [(m.RemoveDelegationTokenRecord(token_id=token), 0)]
        record = m.DelegationTokenRecord(
            owner="User:o",
            requester="User:r",
            renewers=("User:a", "User:b")[: self.rng.randrange(3)],
            issue_timestamp=1,
            max_timestamp=self.rng.randrange(9),
            expiration_timestamp=3,
            token_id=token,
        )
        return [(record, 0)]

    def producer_ids(self) -> list[Versioned]:
        record = m.ProducerIdsRecord(
            broker_id=1, broker_epoch=2, next_producer_id=self.rng.randrange(10_000)
        )
        return [(record, 0)]

    def nothing(self) -> list[Versioned]:
        return [(m.NoOpRecord(), 0), (m.ZkMigrationStateRecord(zk_migration_state=0), 0)]

    def odd_records(self) -> list[Versioned]:
        """Records that cannot follow what was made so far; each is refused."""
        nobody, no_topic = 99, self.uuid()
        broker = next(iter(self.brokers))
        epoch, _ = self.brokers[broker]
        out: list[Message] = [
            m.FeatureLevelRecord(name="metadata.version", feature_level=6),
            m.FeatureLevelRecord(name="metadata.version", feature_level=99),
            m.FenceBrokerRecord(id=nobody, epoch=1),
            m.UnfenceBrokerRecord(id=broker, epoch=epoch + 1),
            m.BrokerRegistrationChangeRecord(broker_id=nobody, broker_epoch=1),
            m.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epoch, fenced=2),
            m.BrokerRegistrationChangeRecord(
                broker_id=broker, broker_epoch=epoch, in_controlled_shutdown=-1
            ),
            m.RegisterBrokerRecord(broker_id=1, end_points=(BrokerEndpoint(name=""),)),
            m.RegisterControllerRecord(
                end_points=(ControllerEndpoint(name="C", security_protocol=9),)
            ),
            m.PartitionRecord(partition_id=0, topic_id=no_topic, replicas=(1,), isr=(1,)),
            m.PartitionChangeRecord(partition_id=0, topic_id=no_topic, leader=1),
            m.RemoveTopicRecord(topic_id=no_topic),
            m.RemoveAccessControlEntryRecord(id=no_topic),
            m.ClearElrRecord(topic_name="no such topic"),
            m.DelegationTokenRecord(owner="nobody", requester="User:r", token_id="t"),
        ]
        for topic_id, partitions in self.topics.values():
            two = (self.uuid(), self.uuid())
            out += [
                m.PartitionChangeRecord(partition_id=len(partitions), topic_id=topic_id, leader=1),
                m.PartitionRecord(
                    partition_id=0, topic_id=topic_id, replicas=(1,), directories=two
                ),
                m.PartitionRecord(
                    partition_id=0, topic_id=topic_id, replicas=(1,), leader_recovery_state=2
                ),
                m.PartitionChangeRecord(
                    partition_id=0, topic_id=topic_id, replicas=(1, 2, 3), directories=two
                ),
                m.PartitionChangeRecord(
                    partition_id=0, topic_id=topic_id, directories=(self.uuid(),) * 9
                ),
                m.PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader_recovery_state=2),
            ]
        return [(record, record.SPEC.versions.last) for record in out]


logs = st.builds(
    lambda rng, batches: LogMaker(rng).log(batches),
    st.randoms(use_true_random=False),
    st.integers(0, 60),
)

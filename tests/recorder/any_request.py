"""Random requests of any API, out of values that are likely to mean something to a broker.

The same seed makes the same request for every target, but for the ids of topics, which are its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec

from kraftline.records import Record, build_batch
from kraftline.schema.fields import FieldSpec, fields
from kraftline.schema.types import ZERO, Message
from kraftline.schema.uuids import Uuid
from tests.recorder.cases import Target

# Of groups and of transactions.
GROUPS: Final = ("one", "three", "nowhere", "")
NAMES: Final = ("one", "three", "many", "nowhere", "a/b", "")
UNKNOWN: Final = Uuid(b"an unknown topic")


def batch(count: int = 3, *, broken: bool = False) -> bytes:
    now = 1_700_000_000_000
    data = build_batch([Record(n, now + n, b"k", b"v" * n) for n in range(count)])
    return data[:-1] + b"!" if broken else data


_PARTITIONS: Final = (0, 0, 1, 2, 59, 60, -1)
_OFFSETS: Final = (0, 1, 5, 1000, -1, -2, -3, -4, -5, -6, 2**62)
_EPOCHS: Final = (-1, -1, 0, 1, 7)
# A name stands for the id of that topic.
_TOPIC_IDS: Final = ("one", "three", "many", UNKNOWN, ZERO)
# By the name of a field, or by its class and name.
VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "name": NAMES,
    "topic": NAMES,
    "topic_name": NAMES,
    "partition": _PARTITIONS,
    "partition_index": _PARTITIONS,
    "index": _PARTITIONS,
    "offset": _OFFSETS,
    "fetch_offset": _OFFSETS,
    "timestamp": (*_OFFSETS, 1_700_000_000_001),
    "log_start_offset": (-1, 0),
    "leader_epoch": _EPOCHS,
    "current_leader_epoch": _EPOCHS,
    "last_fetched_epoch": _EPOCHS,
    "max_bytes": (2**31 - 1, 1000, 1, 0),
    "partition_max_bytes": (1 << 20, 100, 1, 0),
    "max_wait_ms": (0, 1, 20),
    "min_bytes": (0, 1),
    "isolation_level": (0, 1),
    "replica_id": (-1,),
    "replica_epoch": (-1,),
    "session_id": (0, 0, 7),
    "session_epoch": (-1, 0, 3),
    "cluster_id": (None,),
    "rack_id": ("", "left"),
    "timeout_ms": (1000, 5000),
    "acks": (-1, 1, 1, 5),
    # Real Kafka never answers a produce without records.
    "records": (b"", b"garbage", batch(), batch(1), batch(broken=True)),
    "transactional_id": (None,),
    "transaction_timeout_ms": (1000, 60_000, 0, -1),
    "producer_id": (-1, -1, 5),
    "producer_epoch": (-1, -1, 5),
    "enable2_pc": (False,),
    "keep_prepared_txn": (False,),
    "response_partition_limit": (2000, 5, 1, 0, -1),
    "client_software_name": ("rec", "", "a b"),
    "client_software_version": ("1.0", "", "-"),
    "endpoint_type": (1, 1, 2, 3),
    "allow_auto_topic_creation": (False,),
    "high_watermark": (-1, 0),
    "replica_directory_id": (ZERO,),
    # Nothing is made or removed: others count on the topics that there are.
    "CreateTopicsRequest.validate_only": (True,),
    "CreatableTopic.name": ("new", "newer", *NAMES),
    "CreatableTopic.num_partitions": (-1, 1, 3, 0, -2),
    "CreatableTopic.replication_factor": (-1, 1, 2, 0),
    "CreatableTopicConfig.name": ("retention.ms", "cleanup.policy", "segment.bytes", "no.such", ""),
    "CreatableTopicConfig.value": ("1000", "compact", "delete", "many", "-5", "", None),
    "CreatableReplicaAssignment.broker_ids": ((1,), (1,), (2,), (), (1, 1), (1, 2)),
    # An id of zeros makes real Kafka stumble: UNKNOWN_SERVER_ERROR for all of a fetch.
    "FetchTopic.topic_id": _TOPIC_IDS[:-1],
    "ForgottenTopic.topic_id": _TOPIC_IDS[:-1],
    "DeleteTopicState.name": ("nowhere", "a/b", "", None),
    "DeleteTopicState.topic_id": (UNKNOWN, ZERO),
    "DeleteTopicsRequest.topic_names": ((), ("nowhere",), ("a/b", "nowhere"), ("", "away")),
    "SaslHandshakeRequest.mechanism": ("PLAIN", "SCRAM-SHA-256", ""),
    "auth_bytes": (b"", b"\0alice\0secret", b"n,,n=alice,r=1"),
    # Who sends a 0 has no answer.
    "resource_type_filter": (1, 2, 4, 9),
    "resource_name_filter": (None, *NAMES),
    "pattern_type_filter": (1, 2, 3, 4, 9),
    "principal_filter": (None, "User:alice", "User:*", ""),
    "host_filter": (None, "*", "127.0.0.1", ""),
    "AclCreation.resource_type": (1, 2, 3, 4, 9),
    "AclCreation.resource_name": ("kafka-cluster", *NAMES),
    "resource_pattern_type": (1, 2, 3, 4, 9),
    "principal": ("User:alice", "User:*", "alice", ""),
    "AclCreation.host": ("*", "127.0.0.1", ""),
    "operation": (1, 2, 3, 8, 99),
    "permission_type": (1, 2, 3, 9),
    "entity_type": ("user", "client-id", "ip", "group", ""),
    "entity_name": ("alice", "127.0.0.1", None, ""),
    "match_type": (0, 1, 2, 3),
    "match": ("alice", None, ""),
    "OpData.key": (
        "producer_byte_rate",
        "request_percentage",
        "connection_creation_rate",
        "no_such",
        "",
    ),
    # Large ones: nobody is to be slowed down.
    "OpData.value": (1e9, 2e9, 0.0, -1.0, 1e9 + 0.5, 1e19),
    "ScramCredentialDeletion.name": ("alice", "bob", ""),
    "ScramCredentialUpsertion.name": ("alice", "bob", "carol", ""),
    "UserName.name": ("alice", "bob", "carol", ""),
    "mechanism": (1, 2, 0, 3),
    "hmac": (b"", b"no such token"),
    "renew_period_ms": (-1, 1000),
    "expiry_time_period_ms": (-1, 1000),
    "max_lifetime_ms": (-1, 1000),
    "principal_type": ("User", "Group", ""),
    "principal_name": ("alice", "bob", ""),
    "owner_principal_type": ("User", "Group"),
    "owner_principal_name": ("alice", "bob", "", None),
    # Broker 1 has ports and directories of its own; loggers are another matter.
    "resource_type": (2, 2, 4, 16, 32, 0),
    "resource_name": ("", "7", "x", *NAMES),
    "configuration_keys": ((), ("retention.ms", "no.such"), ("interval.ms",)),
    "resource_types": ((), (4,), (8, 16), (32, 0)),
    # Nothing changes, so that others find what they expect.
    "AlterConfigsRequest.validate_only": (True,),
    "IncrementalAlterConfigsRequest.validate_only": (True,),
    "CreatePartitionsRequest.validate_only": (True,),
    "UpdateFeaturesRequest.validate_only": (True,),
    "AlterableConfig.name": (
        *("retention.ms", "cleanup.policy", "log.retention.ms", "interval.ms", "node.id"),
        *("consumer.session.timeout.ms", "no.such", "log.cleanup.policy", ""),
    ),
    "AlterableConfig.value": ("1000", "compact", "delete", "many", "-5", "50000", "", None),
    "config_operation": (0, 0, 1, 2, 3, 9),
    "CreatePartitionsTopic.count": (1, 3, 4, 61, 0, -1),
    "broker_ids": ((1,), (1,), (2,), (), (1, 1), (1, 2)),
    "path": ("/no/such", "relative", ""),
    "election_type": (0, 1, 2, -1),
    "replicas": ((1,), (1,), (2,), (), (1, 1), (1, 2), None),
    "feature": ("metadata.version", "group.version", "kraft.version", "foo", ""),
    "max_version_level": (0, 1, 2, 29, 30, 31, -1),
    "upgrade_type": (1, 1, 2, 3, 0),
    "UnregisterBrokerRequest.broker_id": (7, 99, -1),
    "iterations": (4096, 16384, 4095, 16385, 0),
    # So many groups that hardly one is asked twice: what is assigned later is a matter of time.
    "ConsumerGroupHeartbeatRequest.group_id": ("", *(f"heard-{number}" for number in range(5000))),
    "ConsumerGroupHeartbeatRequest.member_id": ("a", "b", " "),
    "ConsumerGroupHeartbeatRequest.member_epoch": (0, 0, 0, 0, 1, 2, -1, -2, -3),
    "ConsumerGroupHeartbeatRequest.instance_id": (None, None, "i", ""),
    "ConsumerGroupHeartbeatRequest.rack_id": (None, None, "left", ""),
    "ConsumerGroupHeartbeatRequest.rebalance_timeout_ms": (1000, 60_000, -1),
    "ConsumerGroupHeartbeatRequest.subscribed_topic_names": (
        *(None, (), ("one",), ("one",), ("three", "many"), ("nowhere", "a/b", "")),
    ),
    "ConsumerGroupHeartbeatRequest.subscribed_topic_regex": (None, None, "", "o.*", "("),
    "ConsumerGroupHeartbeatRequest.server_assignor": (None, None, "range", "sticky", ""),
    "ConsumerGroupDescribeRequest.group_ids": ((), ("nobody",), ("", "nobody"), ("a", "b", "a")),
    "group_id": GROUPS,
    "groups": ((), ("one",), ("three", "nowhere", ""), ("many",)),
    "groups_names": ((), ("one",), ("nowhere", "three", "")),
    "FindCoordinatorRequest.key": GROUPS,
    "key_type": (0, 0, 1),
    "coordinator_keys": ((), ("one",), ("three", "nowhere", "")),
    "generation_id": (-1, -1, 0, 1),
    "generation_id_or_member_epoch": (-1, -1, -1, 0, 1),
    "member_epoch": (-1, -1, 0, 1),
    # Nobody joins: that takes time, and whoever is a member leaves by time.
    "member_id": ("", "nobody"),
    "JoinGroupRequest.member_id": ("nobody",),
    "JoinGroupRequest.group_instance_id": (None,),
    "group_instance_id": (None, None, "i"),
    "retention_time_ms": (-1, 3_600_000),
    "committed_offset": (0, 5, 1000, -1),
    "committed_leader_epoch": _EPOCHS,
    "committed_metadata": ("", "said", None, "much" * 1025),
    "partition_indexes": ((0,), (0, 1, 60), (), (-1,)),
    "session_timeout_ms": (30_000, 1000, 0),
    "rebalance_timeout_ms": (30_000, 0),
    "protocol_type": ("consumer", "", "connect"),
    "protocol_name": ("range", "", None),
    "JoinGroupRequestProtocol.name": ("range", "sticky", ""),
    "JoinGroupRequestProtocol.metadata": (b"", b"about"),
    "assignment": (b"", b"given"),
    "reason": (None, "", "because"),
    "states_filter": ((), ("Stable",), ("Empty", "Dead"), ("nothing",)),
    "types_filter": ((), ("classic",), ("consumer", "share"), ("nothing",)),
    # Who begins a transaction is told of in stories: what becomes of it is a matter of time.
    "AddPartitionsToTxnTransaction.transactional_id": GROUPS,
    "AddPartitionsToTxnRequest.v3_and_below_transactional_id": GROUPS,
    "v3_and_below_producer_id": (-1, 5, 0),
    "v3_and_below_producer_epoch": (-1, 0, 5),
    "AddOffsetsToTxnRequest.transactional_id": GROUPS,
    "EndTxnRequest.transactional_id": GROUPS,
    "TxnOffsetCommitRequest.transactional_id": GROUPS,
    # Markers would stay in logs that others count on.
    "WritableTxnMarkerTopic.name": ("nowhere", "a/b"),
    "coordinator_epoch": (0, 1, -1),
    "transaction_version": (0, 1, 2),
    "transactional_ids": ((), ("one",), ("nowhere", "three", "")),
    "state_filters": ((), ("Ongoing",), ("Empty", "nothing")),
    "producer_id_filters": ((), (5,), (0, -1)),
    "duration_filter": (-1, 0, 1000),
    "transactional_id_pattern": (None, "", "o.*", "("),
    "salt": (b"salt", b""),
    "salted_password": (b"salted", b"password"),
}


# Of a partition that is named twice in a produce Kafka may write one and tell of the other, and of
# one in a fetch too; AlterConfigs with a resource that is there twice it never answers. Of a part
# of a transaction that is named twice, or has no partitions, it tells or not.
_EACH_ONCE: Final = (0, 1, 24, 28, 33)
_NAMING: Final = (
    *("name", "topic", "topic_id", "index", "partition", "partition_index", "transactional_id"),
    *("resource_type", "resource_name"),
)
# How many there are of what repeats.
_COUNTS: Final = {
    "configs": (0, 1),
    "transactions": (1, 3),  # without any Kafka never answers
    "AddPartitionsToTxnTopic.partitions": (1, 1),
    "TxnOffsetCommitRequestTopic.partitions": (1, 3),
}


def any_request(kind: type[Message], version: int, seed: int, target: Target) -> Message:
    return _Maker(Random(seed), version, target).message(kind)


class _Maker(msgspec.Struct):
    random: Random
    version: int
    target: Target

    def message(self, kind: type[Message]) -> Message:
        found = {
            field.name: self._field(kind, field)
            for field in fields(kind)
            if self.version in field.versions
        }
        return kind(**found)

    def _field(self, kind: type[Message], field: FieldSpec) -> Any:
        nullable = self.version in field.nullable
        chosen = VALUES.get(f"{kind.__name__}.{field.name}", VALUES.get(field.name))
        struct = field.struct
        if field.is_array and (chosen is None or struct is not None or field.name == "partitions"):
            if nullable and self.random.random() < 0.2:
                return None
            named = f"{kind.__name__}.{field.name}"
            least, most = _COUNTS.get(named, _COUNTS.get(field.name, (0, 3)))
            count = self.random.randint(least, most)
            if struct is None:
                return tuple(self.random.choice(_PARTITIONS) for _ in range(count))
            made = [self.message(struct) for _ in range(count)]
            if kind.SPEC.key in _EACH_ONCE:
                by_name = {tuple(getattr(m, name, None) for name in _NAMING): m for m in made}
                return tuple(by_name.values())
            return tuple(made)
        if struct is not None:
            return None if nullable and self.random.random() < 0.5 else self.message(struct)
        if field.wire == "uuid":
            which = self.random.choice(chosen or _TOPIC_IDS)
            return which if isinstance(which, Uuid) else self.target.topic_id(which)
        if chosen is not None:
            return self._representable(self.random.choice(chosen), field, nullable)
        if field.wire == "bool":
            return self.random.random() < 0.5
        raise AssertionError(f"nothing is known of {kind.__name__}.{field.name}")

    def _representable(self, value: Any, field: FieldSpec, nullable: bool) -> Any:
        if value is None and not nullable:
            return b"" if field.wire == "records" else ""
        return value

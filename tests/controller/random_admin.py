"""Whatever administrators may ask, right and wrong, out of few names so that requests meet."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from kraftline.schema.api import alter_configs as legacy
from kraftline.schema.api.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kraftline.schema.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftline.schema.api.controller_registration import ControllerRegistrationRequest, Listener
from kraftline.schema.api.create_acls import AclCreation, CreateAclsRequest
from kraftline.schema.api.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftline.schema.api.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.controller.admin_stories import (
    configure,
    elect,
    feature,
    grow,
    move,
    moving,
    unregister,
)
from tests.controller.broker_stories import Known
from tests.controller.topic_requests import create, delete, topic

T = TypeVar("T")

BROKERS = range(2, 6)
_TOPIC, _BROKER, _CLIENT_METRICS, _GROUP = 2, 4, 16, 32
# By the type of a resource: a key, values that are right, values that are not.
_CONFIGS = {
    _TOPIC: (
        ("retention.ms", ("1", "-1"), ("no number",)),
        ("cleanup.policy", ("compact", "delete,compact"), ("nothing", "")),
        ("min.insync.replicas", ("1", "2"), ("0",)),
        ("unclean.leader.election.enable", ("true", "false"), ("perhaps",)),
        ("leader.replication.throttled.replicas", ("0:1,1:2", "*"), ("x",)),
    ),
    _BROKER: (
        ("min.insync.replicas", ("1", "3"), ("-4",)),
        ("log.retention.ms", ("5", "-1"), ("x",)),
    ),
    _CLIENT_METRICS: (
        ("interval.ms", ("1000", "60000"), ("5",)),
        ("metrics", ("a,b", "c"), ("",)),
    ),
    _GROUP: (("consumer.session.timeout.ms", ("45000", "50000"), ("1",)),),
}
_NAMES = {
    _TOPIC: (("t0", "t1", "t2"), ("nowhere", "")),
    _BROKER: (("", "1"), ("9", "x")),
    _CLIENT_METRICS: (("all", "some"), ("",)),
    _GROUP: (("g1", "g2"), ("",)),
}
_FEATURES = ("group.version", "eligible.leader.replicas.version", "transaction.version")
_QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")


def random_request(random: Random) -> Message:
    """One request; many of them are refused."""
    kinds = (
        *(_topics, _configs, _legacy_configs, _partitions, _elections, _moves, _features),
        *(_acls, _no_acls, _quotas, _scram, _controllers),
    )
    # Brokers that are gone leave little to ask for.
    return (_brokers if random.random() < 0.02 else random.choice(kinds))(random)


def _one(random: Random, good: Sequence[T], bad: Sequence[T]) -> T:
    return random.choice(bad if random.random() < 0.2 else good)


def _name(random: Random) -> str:
    return _one(random, ("t0", "t1", "t2", "t3", "t4", "t5"), ("nowhere", "bad/name"))


def _replicas(random: Random) -> tuple[int, ...]:
    some = tuple(random.sample(BROKERS, random.randint(1, 3)))
    return _one(random, (some,), ((), (9,), (2, 2), (*some, -1)))


def _topics(random: Random) -> Message:
    if random.random() < 0.1:
        return delete(*{_name(random) for _ in range(2)})
    made = topic(_name(random), _one(random, (-1, 1, 4), (0,)), _one(random, (-1, 1, 2), (9,)))
    return create(made, validate_only=random.random() < 0.3)


def _configs(random: Random) -> Message:
    kind = random.choice(tuple(_CONFIGS))
    key, good, bad = random.choice(_CONFIGS[kind])
    value = _one(random, good, (*bad, None))
    operation = random.choice((2, 3)) if "," in str(value) else random.randrange(2)
    return configure(kind, _one(random, *_NAMES[kind]), (key, operation, value))(Known())[0]


def _legacy_configs(random: Random) -> Message:
    kind = random.choice((_TOPIC, _BROKER))
    key, good, bad = random.choice(_CONFIGS[kind])
    config = legacy.AlterableConfig(name=key, value=_one(random, good, (*bad, None)))
    resource = legacy.AlterConfigsResource(
        resource_type=kind, resource_name=_one(random, *_NAMES[kind]), configs=(config,)
    )
    return legacy.AlterConfigsRequest(resources=(resource,), validate_only=random.random() < 0.3)


def _partitions(random: Random) -> Message:
    name, count = _name(random), random.choice((1, 4, 5, 6))
    if random.random() < 0.3:
        return grow(name, count, [_replicas(random) for _ in range(random.randint(0, 2))])(Known())[
            0
        ]
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=(wanted,), validate_only=random.random() < 0.2)


def _elections(random: Random) -> Message:
    wanted = [(_name(random), (random.randrange(4),))] if random.random() < 0.8 else []
    return elect(random.randrange(2), *wanted)(Known())[0]


def _moves(random: Random) -> Message:
    if random.random() < 0.1:
        return moving()(Known())[0]
    to = None if random.random() < 0.3 else _replicas(random)
    wanted = (random.choice((0, 0, 1, 3)), to)
    return move(_name(random), wanted, resize=random.random() < 0.8)(Known())[0]


def _features(random: Random) -> Message:
    name = _one(random, _FEATURES, ("unheard.of", "metadata.version"))
    update = name, _one(random, (0, 1), (20, 31)), random.randint(1, 3)
    return feature(update, validate_only=random.random() < 0.3)(Known())[0]


def _acls(random: Random) -> Message:
    return CreateAclsRequest(
        creations=tuple(
            AclCreation(
                resource_type=random.choice((2, 3, 4)),
                resource_name=random.choice(("t0", "kafka-cluster", "*", "")),
                resource_pattern_type=random.choice((3, 4)),
                principal=random.choice(("User:alice", "User:bob", "nobody")),
                host=random.choice(("*", "10.0.0.1")),
                operation=random.choice((2, 3, 4, 8)),
                permission_type=random.choice((2, 3)),
            )
            for _ in range(random.randint(1, 3))
        )
    )


def _no_acls(random: Random) -> Message:
    return DeleteAclsRequest(
        filters=(
            DeleteAclsFilter(
                resource_type_filter=random.choice((1, 2, 4)),
                resource_name_filter=random.choice((None, "t0")),
                pattern_type_filter=random.choice((1, 2, 3)),
                principal_filter=random.choice((None, "User:alice")),
                host_filter=None,
                operation=1,
                permission_type=1,
            ),
        )
    )


def _quotas(random: Random) -> Message:
    entity = AlterClientQuotasRequestEntityData(
        entity_type=_one(random, ("user", "client-id"), ("ip", "planet")),
        entity_name=random.choice((None, "alice", "bob")),
    )
    change = OpData(
        key=_one(random, _QUOTAS, ("unheard_of", "connection_creation_rate")),
        value=_one(random, (100.0, 2000.0), (-1.0, 0.5)),
        remove=random.random() < 0.3,
    )
    entry = AlterClientQuotasRequestEntryData(entity=(entity,), ops=(change,))
    return AlterClientQuotasRequest(entries=(entry,), validate_only=random.random() < 0.3)


def _scram(random: Random) -> Message:
    name, mechanism = _one(random, ("alice", "bob"), ("",)), _one(random, (1, 2), (0, 9))
    if random.random() < 0.4:
        gone = ScramCredentialDeletion(name=name, mechanism=mechanism)
        return AlterUserScramCredentialsRequest(deletions=(gone,))
    made = ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=_one(random, (4096, 8192), (1, 99_999)),
        salt=b"salt",
        salted_password=b"pressed",
    )
    return AlterUserScramCredentialsRequest(upsertions=(made,))


def _brokers(random: Random) -> Message:
    return unregister(random.choice((*BROKERS, 9)))(Known())[0]


def _controllers(random: Random) -> Message:
    listener = Listener(name="C", host=random.choice(("h", "")), port=random.choice((0, 9)))
    return ControllerRegistrationRequest(
        controller_id=random.randint(1, 3),
        incarnation_id=Uuid(random.randbytes(16)),
        listeners=(listener,),
    )

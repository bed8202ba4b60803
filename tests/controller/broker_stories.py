"""What brokers may tell a controller, as steps that any controller can be taken through.

Brokers go by their ids and have made-up directories; their epochs are the controller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import TypeAlias

import msgspec

from kraftline.metadata.features import supported_features
from kraftline.schema.api.allocate_producer_ids import AllocateProducerIdsRequest
from kraftline.schema.api.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest
from kraftline.schema.api.broker_registration import BrokerRegistrationRequest, Feature, Listener
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.controller.topic_requests import STRANGE_ID, assigned, by_id, create, topic
from tests.controller.topic_requests import delete as deleted

CLUSTER = "kraftlineoracleclustrA"
FAR = 1_000_000_000


class Known(msgspec.Struct):
    """What a controller gave: epochs to brokers, ids to topics."""

    epochs: dict[int, int] = {}
    ids: dict[str, Uuid] = {}


# A request and its version, by what the answers before it said.
Step: TypeAlias = Callable[[Known], tuple[Message, int]]


class Silence(msgspec.Struct, frozen=True):
    """Nobody says anything until sessions have ended, but for some who go on."""

    but: tuple[int, ...] = ()


def directory(broker: int, number: int = 0) -> Uuid:
    return Uuid(bytes([9]) + bytes(13) + bytes([broker, number]))


def incarnation(broker: int, number: int) -> Uuid:
    return Uuid(bytes([7]) + bytes(13) + bytes([broker, number]))


def features(**changed: tuple[int, int]) -> tuple[Feature, ...]:
    known = supported_features() | {name.replace("_", "."): each for name, each in changed.items()}
    return tuple(
        Feature(name=name, min_supported_version=least, max_supported_version=most)
        for name, (least, most) in known.items()
        if most >= 0
    )


def register(broker: int, number: int = 0, *, after: str = "crash", **changes: object) -> Step:
    """`after` a clean stop the broker knows the epoch that it had."""

    def step(known: Known) -> tuple[Message, int]:
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=CLUSTER,
            incarnation_id=incarnation(broker, number),
            listeners=(Listener(name="PLAINTEXT", host="127.0.0.1", port=1000 + broker),),
            features=features(),
            rack=None,
            log_dirs=(directory(broker),),
            previous_broker_epoch=known.epochs.get(broker, -1) if after == "clean" else -1,
        )
        return msgspec.structs.replace(request, **changes), 4

    return step


def beat(broker: int, offset: int = FAR, *, epoch: int | None = None, **says: object) -> Step:
    def step(known: Known) -> tuple[Message, int]:
        request = BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=known.epochs.get(broker, -1) if epoch is None else epoch,
            current_metadata_offset=offset,
        )
        return msgspec.structs.replace(request, **says), 2

    return step


def ids(broker: int, *, epoch: int | None = None) -> Step:
    def step(known: Known) -> tuple[Message, int]:
        at = known.epochs.get(broker, -1) if epoch is None else epoch
        return AllocateProducerIdsRequest(broker_id=broker, broker_epoch=at), 0

    return step


def assign(broker: int, to: Uuid, *where: tuple[str, int], epoch: int | None = None) -> Step:
    """Replicas of topics, with their partitions, are in a directory."""

    def step(known: Known) -> tuple[Message, int]:
        topics: dict[Uuid, list[int]] = {}
        for name, partition in where:
            topics.setdefault(known.ids.get(name, STRANGE_ID), []).append(partition)
        request = AssignReplicasToDirsRequest(
            broker_id=broker,
            broker_epoch=known.epochs.get(broker, -1) if epoch is None else epoch,
            directories=(
                AssignReplicasToDirsRequestDirectoryData(
                    id=to,
                    topics=tuple(
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=each,
                            partitions=tuple(
                                AssignReplicasToDirsRequestPartitionData(partition_index=number)
                                for number in numbers
                            ),
                        )
                        for each, numbers in topics.items()
                    ),
                ),
            ),
        )
        return request, 0

    return step


def ask(request: Message, version: int) -> Step:
    return lambda known: (request, version)


def told_story() -> Iterator[Step]:
    """Every rule once."""
    # Registrations that are refused.
    yield register(2, cluster_id="another")
    yield register(2, log_dirs=())
    yield register(2, log_dirs=(Uuid(bytes(15) + b"\x05"),))
    yield register(2, log_dirs=(Uuid(bytes(15) + b"\x63"),))
    yield register(2, log_dirs=(directory(2), directory(2)))
    yield register(2, is_migrating_zk_broker=True)
    yield register(2, features=features(metadata_version=(7, 29)))
    yield register(2, features=features(metadata_version=(-1, -1)))
    yield register(2, features=features(transaction_version=(0, 1)))
    yield register(2, features=features(transaction_version=(-1, -1)))
    yield register(2, features=features(strange_version=(0, 7)))
    yield register(2, 1, features=features(strange_version=(1, 7)))
    yield register(3, log_dirs=(directory(2), directory(3)))
    # Not known, not this epoch.
    yield beat(5)
    yield beat(2, epoch=1)
    yield ids(2, epoch=1)
    yield ids(6)
    yield ask(create(topic("too-early")), 7)
    # Unfenced when it has read its registration, and wants to.
    yield beat(2, 0)
    yield beat(2, want_fence=True)
    yield beat(2, 0, cordoned_log_dirs=())
    yield beat(2)
    yield beat(2)
    yield ids(2)
    yield ids(2)
    # A live broker's id, the same incarnation again.
    yield register(2, 1)
    yield register(2, rack="r2")
    yield beat(2)
    yield register(3)
    yield register(3, 1, rack="r3")
    yield beat(3)
    yield register(4, log_dirs=(directory(4, 0), directory(4, 1)))
    # Topics on brokers that are up, fenced, unknown.
    yield ask(create(assigned("a", (0, (2, 3, 4)), (1, (3, 4, 2)), (2, (4, 2, 3)))), 7)
    yield ask(create(assigned("fenced", (0, (4,)))), 7)
    yield ask(create(topic("many", 1, 4)), 7)
    yield beat(4)
    yield ask(create(assigned("b", (0, (4, 3)), (1, (2, 3)), (2, (4, 2)))), 7)
    strict = topic("c", -1, -1, {"min.insync.replicas": "2"}, {0: (2, 3), 1: (3, 4)})
    loose = topic("u", -1, -1, {"unclean.leader.election.enable": "true"}, {0: (2, 3), 1: (4,)})
    yield ask(create(strict, loose), 7)
    # Fencing, coming back, directories that fail or are cordoned.
    yield beat(2, want_fence=True)
    yield beat(2)
    yield beat(4, offline_log_dirs=(directory(4, 1),))
    yield beat(4, offline_log_dirs=(directory(4, 1),))
    yield beat(4, cordoned_log_dirs=(directory(4, 0),))
    yield ask(create(topic("cordoned", 1, 3), validate_only=True), 7)
    yield beat(4, cordoned_log_dirs=())
    # Where replicas are.
    yield assign(4, directory(4, 0), ("a", 0), ("a", 1), ("b", 0), ("b", 1), ("a", 9), ("no", 0))
    yield assign(4, directory(4, 0), ("a", 0), epoch=3)
    yield assign(4, directory(4, 0), ("a", 0), ("b", 2))
    yield assign(4, directory(4, 1), ("b", 2), ("u", 1), ("c", 1))
    yield assign(9, directory(4, 1), ("b", 2))
    # Controlled shutdown waits for the others.
    yield beat(3, 0)
    yield beat(4, want_shut_down=True)
    yield beat(4, want_shut_down=True)
    yield beat(3)
    yield beat(4, want_shut_down=True)
    yield beat(4)
    yield register(4, 1, after="clean", log_dirs=(directory(4, 0), directory(4, 1)))
    yield beat(4, 0, want_shut_down=True)
    yield beat(4)
    # Everyone goes, and comes back with or without what it had.
    yield beat(2, want_shut_down=True)
    yield beat(2, want_shut_down=True)
    yield beat(3, want_fence=True)
    yield beat(4, want_fence=True, want_shut_down=True)
    yield register(3, 2)
    yield beat(3)
    yield register(2, 2, after="clean")
    yield beat(2)
    yield register(4, 3, log_dirs=(directory(4, 0),))
    yield beat(4)
    yield ask(by_id(), 6)
    yield ask(deleted("a", "nothing"), 5)


def silent_story() -> Iterator[Step | Silence]:
    """Brokers die without a word, and come back as others."""
    for broker in (2, 3, 4):
        yield register(broker)
        yield beat(broker)
    strict = topic("c", -1, -1, {"min.insync.replicas": "2"}, {0: (2, 3), 1: (3, 2), 2: (4, 2)})
    loose = topic("u", -1, -1, {"unclean.leader.election.enable": "true"}, {0: (2, 4), 1: (3, 2)})
    yield ask(create(strict, loose, assigned("a", (0, (2,)), (1, (3,)), (2, (4,)))), 7)
    yield register(2, 1)
    yield Silence(but=(3, 4))
    yield beat(2, want_fence=True)
    yield Silence(but=(3, 4))
    yield register(2, 1)
    yield beat(2)
    yield Silence(but=(2, 4))
    yield register(3, 1, after="clean")
    yield beat(3, want_fence=True)
    yield beat(3)
    yield beat(2, want_shut_down=True)
    yield beat(3)
    yield beat(4)
    yield beat(2, want_shut_down=True)
    yield register(2, 2, after="clean")
    yield Silence(but=(3, 4))
    yield register(2, 2, after="clean")
    # The last one dies while the others are away.
    yield Silence(but=(3,))
    yield register(4, 1, after="clean")
    yield Silence()
    yield register(3, 2)
    yield beat(3)
    yield beat(4)
    yield beat(2)
    yield Silence(but=(2, 3))


def random_story(random: Random, length: int) -> Iterator[Step]:
    """Brokers 2 to 5 do whatever they like to a few topics."""
    brokers = range(2, 6)
    incarnations = dict.fromkeys(brokers, 0)
    for broker in brokers:
        yield register(broker, log_dirs=(directory(broker, 0), directory(broker, 1)))
        yield beat(broker)
    for number in range(6):
        replicas = [(n, tuple(random.sample(brokers, 3 if number < 4 else 2))) for n in range(3)]
        configs = {
            "min.insync.replicas": str(random.choice((1, 2, 3))),
            "unclean.leader.election.enable": random.choice(("true", "false", "false")),
        }
        yield ask(create(topic(f"t{number}", -1, -1, configs, dict(replicas))), 7)
    for step in range(length):
        broker = random.choice(brokers)
        match random.randrange(12):
            case 0:
                incarnations[broker] += 1
                dirs = random.choice(((0, 1), (0, 1), (0,), (1,)))
                yield register(
                    broker,
                    incarnations[broker],
                    after=random.choice(("clean", "crash")),
                    log_dirs=tuple(directory(broker, n) for n in dirs),
                )
                yield beat(broker, random.choice((0, FAR)))
            case 1:
                yield register(broker, incarnations[broker], rack=f"r{step}")
            case 2 | 3:
                yield beat(broker, want_fence=True)
            case 4:
                yield beat(broker, random.choice((0, FAR)), want_shut_down=True)
            case 5:
                lost = (directory(broker, random.randrange(2)),)
                yield beat(broker, offline_log_dirs=lost)
            case 6:
                yield ids(broker)
                where = [(f"t{random.randrange(6)}", random.randrange(3)) for _ in range(4)]
                yield assign(broker, directory(broker, random.randrange(2)), *where)
            case 7:
                replicas = [(0, tuple(random.sample(brokers, 2)))]
                yield ask(create(assigned(f"new-{step}", *replicas)), 7)
            case _:
                yield beat(broker)

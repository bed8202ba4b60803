"""A cluster in which everything that answers depend on is odd somewhere, as records.

Brokers: 1 and 2 are well, 3 is fenced, 4 lacks the listener PLAINTEXT, 5 has no directory online
but one, 6 never told of directories, 7 is in controlled shutdown. 9 is not registered.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftline.metadata.partition import LOST, MIGRATING, UNASSIGNED
from kraftline.metadata.write_options import Versioned
from kraftline.schema.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.register_broker_record import (
    BrokerEndpoint,
    RegisterBrokerRecord,
)
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid

LEVEL = 30


def uuid(number: int) -> Uuid:
    return Uuid(b"odd cluster " + number.to_bytes(4, "big"))


def _broker(
    number: int,
    *,
    listeners: tuple[str, ...] = ("PLAINTEXT", "OTHER"),
    fenced: bool = False,
    rack: str | None = None,
    directories: tuple[Uuid, ...] = (),
) -> Versioned:
    record = RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=uuid(1000 + number),
        broker_epoch=number,
        end_points=tuple(
            BrokerEndpoint(name=name, host=f"{name.lower()}-{number}", port=9092 + number)
            for name in listeners
        ),
        rack=rack,
        fenced=fenced,
        log_dirs=directories,
    )
    return record, 3


def _topic(name: str, number: int, *partitions: PartitionRecord) -> Iterator[Versioned]:
    yield TopicRecord(name=name, topic_id=uuid(number)), 0
    for at, each in enumerate(partitions):
        fields = {name: getattr(each, name) for name in each.__struct_fields__}
        fields |= {"partition_id": each.partition_id or at, "topic_id": uuid(number)}
        yield PartitionRecord(**fields), 2


def _partition(
    *replicas: int,
    leader: int,
    isr: tuple[int, ...] | None = None,
    directories: tuple[Uuid, ...] | None = None,
    elr: tuple[int, ...] | None = None,
    last_known: tuple[int, ...] | None = None,
    epoch: int = 0,
    number: int = 0,
) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        replicas=replicas,
        isr=replicas if isr is None else isr,
        leader=leader,
        leader_epoch=epoch,
        directories=(UNASSIGNED,) * len(replicas) if directories is None else directories,
        eligible_leader_replicas=elr,
        last_known_elr=last_known,
    )


def one_large_topic(partitions: int) -> list[Versioned]:
    """A topic of its own, on brokers 1 and 2."""
    return [
        (FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0),
        _broker(1),
        _broker(2),
        *_topic("large", 1, *(_partition(1 + n % 2, 2, leader=2) for n in range(partitions))),
        *_topic("next", 2, _partition(1, leader=1)),
    ]


def records() -> list[Versioned]:
    good, bad = uuid(100), uuid(101)
    found: list[Versioned] = [
        (FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0),
        (FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1), 0),
        (FeatureLevelRecord(name="transaction.version", feature_level=2), 0),
        _broker(1, rack="left", directories=(good,)),
        _broker(2, rack="right", directories=(good,)),
        _broker(3, fenced=True),
        _broker(4, listeners=("OTHER",)),
        _broker(5, directories=(good,)),
        _broker(6),
        _broker(7),
        (
            BrokerRegistrationChangeRecord(
                broker_id=7, broker_epoch=7, fenced=0, in_controlled_shutdown=1
            ),
            1,
        ),
    ]
    found += _topic(
        "leaders",
        1,
        _partition(1, 2, leader=1, directories=(good, good)),
        _partition(3, 1, leader=3),  # fenced
        _partition(4, 1, leader=4),  # lacks PLAINTEXT
        _partition(9, 1, leader=9),  # not registered
        _partition(1, 2, leader=-1, isr=(), epoch=7),  # none
        _partition(7, 2, leader=7),  # shuts down
    )
    found += _topic(
        "directories",
        2,
        _partition(5, 1, leader=1, directories=(bad, good)),
        _partition(5, 1, leader=5, directories=(LOST, good)),
        _partition(5, 6, leader=6, directories=(MIGRATING, bad)),
        _partition(5, 6, leader=6, directories=(UNASSIGNED, LOST)),
        _partition(1, 9, 3, leader=1, isr=(1,), directories=(good, bad, good)),
    )
    found += _topic(
        "eligible",
        3,
        _partition(1, 2, 3, leader=-1, isr=(), elr=(2,), last_known=(3,)),
        _partition(1, 2, 3, leader=1, isr=(1,), elr=(3, 2)),
        _partition(1, 2, 3, leader=1, isr=(1, 2, 3), last_known=(1,), epoch=2**31 - 1),
    )
    found += _topic("__consumer_offsets", 4, _partition(1, leader=1))
    found += _topic("__transaction_state", 5, _partition(2, leader=2))
    found += _topic("__share_group_state", 6, _partition(2, leader=2))
    found += _topic("__cluster_metadata", 7, _partition(2, leader=2))
    found += _topic("many", 8, *(_partition(1 + i % 3, 2, leader=2) for i in range(300)))
    found += _topic("one", 9, _partition(1, leader=1))
    found += _topic("only-fenced", 10, _partition(3, leader=3))
    found += _topic("empty", 11)
    found += _topic("holes", 12, *(_partition(1, 2, leader=1, number=at) for at in (1, 2, 4, 5, 9)))
    found += _topic("Upper", 13, _partition(1, leader=1), _partition(2, leader=2))
    return found

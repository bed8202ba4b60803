"""Changes as a person would say them: the sentence and the code for each."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kraftline.metadata import words
from kraftline.metadata.image.acls import Acl
from kraftline.metadata.image.configs import ConfigResource
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.metadata.image.scram import ScramCredential
from kraftline.metadata.partition import LOST, UNASSIGNED, PartitionRegistration, Unusual
from kraftline.metadata.registrations import (
    BrokerRegistration,
    ControllerRegistration,
    Listener,
    SupportedFeature,
)
from kraftline.metadata.words.values import config_value, duration, is_secret, size
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.leader_change_message import LeaderChangeMessage
from kraftline.schema.control.voters_record import Voter, VotersRecord
from kraftline.schema.metadata.no_op_record import NoOpRecord
from kraftline.schema.metadata.zk_migration_state_record import ZkMigrationStateRecord
from kraftline.schema.uuids import Uuid

replace = msgspec.structs.replace


def uuid(number: int) -> Uuid:
    return Uuid(bytes(14) + number.to_bytes(2, "big"))


A, B, C = uuid(1001), uuid(1002), uuid(1003)
HEALTHY = PartitionRegistration((2, 5, 1), (A, B, C), (2, 5, 1), 2, 7, 9)
ALONE = PartitionRegistration((2,), (A,), (2,), 2, 7, 9)


def become(before: PartitionRegistration, **now: object) -> PartitionRegistration:
    unusual = {name: now.pop(name) for name in Unusual.__struct_fields__ if name in now}
    return replace(before, **now, unusual=replace(before.unusual, **unusual))


def said(before: PartitionRegistration, why: words.Why | None = None, **now: object) -> list[str]:
    after = become(before, **now)
    found = words.partition_changes("orders", 3, before, after, *([why] if why else []))
    assert all(change.topic == "orders" and change.partition == 3 for change in found)
    return [f"{change.kind}: {change.text}" for change in found]


def fenced(broker: int, back: bool, directory: Uuid | None) -> str | None:
    return f"broker {broker} was {'unfenced' if back else 'fenced'}"


def test_a_leader_moves_with_its_cause() -> None:
    assert said(HEALTHY, fenced, leader=5, leader_epoch=8) == [
        "leader.moved: leader of orders-3 moved 2 -> 5 because broker 2 was fenced"
    ]
    assert said(HEALTHY, leader=5, leader_epoch=8) == [
        "leader.moved: leader of orders-3 moved 2 -> 5"
    ]


def test_a_leader_moves_home() -> None:
    away = replace(HEALTHY, leader=5)
    assert said(away, leader=2, leader_epoch=8) == [
        "leader.moved: leader of orders-3 moved 5 -> 2 because 2 is the preferred leader"
    ]


def test_a_leader_is_lost_and_found() -> None:
    assert said(ALONE, fenced, leader=-1, leader_epoch=8) == [
        "leader.lost: orders-3 lost its leader 2 because broker 2 was fenced"
    ]
    lost = replace(ALONE, leader=-1)
    assert said(lost, fenced, leader=2, leader_epoch=8) == [
        "leader.elected: orders-3 has a leader again: 2 because broker 2 was unfenced"
    ]


def test_an_unclean_election() -> None:
    lost = replace(HEALTHY, leader=-1, isr=(2,))
    assert said(lost, leader=5, leader_epoch=8, isr=(5,), leader_recovery_state=1) == [
        "leader.unclean: unclean election: orders-3 is led by 5, which was not in sync; "
        "records may be lost",
        "isr.changed: ISR of orders-3 changed: 2 left, 5 joined; in sync: 5",
    ]
    moved: dict[str, Any] = {"leader": 5, "leader_epoch": 8, "leader_recovery_state": 1}
    assert said(lost, fenced, **moved, isr=(5,))[0] == (
        "leader.unclean: unclean election because broker 5 was unfenced: orders-3 is led by 5, "
        "which was not in sync; records may be lost"
    )
    assert said(replace(HEALTHY, isr=(2,)), fenced, **moved, isr=(5,))[0] == (
        "leader.unclean: unclean election because broker 2 was fenced: orders-3 is led by 5, "
        "which was not in sync; records may be lost"
    )
    assert said(become(HEALTHY, leader_recovery_state=1), leader_recovery_state=0) == [
        "leader.recovered: orders-3 has recovered from its unclean election"
    ]


def test_the_same_leader_in_a_new_epoch() -> None:
    assert said(HEALTHY, leader_epoch=8) == [
        "leader.epoch: leader of orders-3 stays 2, in leader epoch 8 (was 7)"
    ]


def test_the_isr_shrinks_and_grows() -> None:
    assert said(HEALTHY, fenced, isr=(2, 1)) == [
        "isr.shrank: ISR of orders-3 shrank: 5 left because broker 5 was fenced; in sync: 2, 1"
    ]
    assert said(HEALTHY, isr=(2,)) == ["isr.shrank: ISR of orders-3 shrank: 5, 1 left; in sync: 2"]
    assert said(replace(HEALTHY, isr=(2,)), isr=(2, 5)) == [
        "isr.grew: ISR of orders-3 grew: 5 caught up; in sync: 2, 5"
    ]
    assert said(replace(HEALTHY, isr=(2,)), isr=(1, 2, 5)) == [
        "isr.grew: ISR of orders-3 grew: 1, 5 caught up; all in sync: 1, 2, 5"
    ]
    assert said(HEALTHY, isr=(1, 2, 5)) == [
        "isr.reordered: ISR of orders-3 is in another order: 1, 2, 5"
    ]


def test_a_reassignment_from_start_to_end() -> None:
    moving: dict[str, Any] = {
        "replicas": (2, 5, 1, 4),
        "directories": (A, B, C, UNASSIGNED),
        "adding_replicas": (4,),
        "removing_replicas": (1,),
    }
    assert said(HEALTHY, **moving) == [
        "reassignment.started: reassignment of orders-3 started: [2, 5, 1] -> [2, 5, 4] "
        "(adding 4, removing 1)"
    ]
    under_way = become(HEALTHY, **moving)
    assert said(under_way, adding_replicas=()) == [
        "reassignment.progressed: reassignment of orders-3 went on: replicas [2, 5, 1, 4] -> "
        "[2, 5, 1, 4], still removing 1"
    ]
    done: dict[str, Any] = {"adding_replicas": (), "removing_replicas": ()}
    assert said(under_way, replicas=(2, 5, 4), directories=(A, B, C), isr=(2, 5, 4), **done) == [
        "isr.changed: ISR of orders-3 changed: 1 left, 4 joined; all in sync: 2, 5, 4",
        "reassignment.completed: reassignment of orders-3 completed: replicas are now [2, 5, 4]",
        f"directory.assigned: orders-3 on broker 4 is in directory {C}",
    ]
    assert said(under_way, replicas=(2, 5, 1), directories=(A, B, C), **done) == [
        "reassignment.cancelled: reassignment of orders-3 was cancelled: replicas are [2, 5, 1] "
        "again"
    ]


def test_a_reassignment_that_is_given_another_target() -> None:
    """Kafka ends one in a single step: whatever else happens to it, somebody asked for."""
    under_way = become(
        HEALTHY, replicas=(5, 1, 2), directories=(B, C, A), isr=(2,), adding_replicas=(5, 1)
    )
    other: dict[str, Any] = {"replicas": (4, 2), "directories": (B, A), "adding_replicas": (4,)}
    assert said(under_way, **other)[0] == (
        "reassignment.redirected: reassignment of orders-3 was given another target: [4, 2] "
        "instead of [5, 1, 2] (adding 4)"
    )


def test_a_reassignment_that_only_takes_away() -> None:
    under_way = become(HEALTHY, removing_replicas=(1,))
    assert said(under_way, removing_replicas=()) == [
        "reassignment.cancelled: reassignment of orders-3 was cancelled: replicas are [2, 5, 1] "
        "again"
    ]
    taken: dict[str, Any] = {"replicas": (2, 5), "directories": (A, B), "isr": (2, 5)}
    assert said(under_way, removing_replicas=(), **taken)[-1] == (
        "reassignment.completed: reassignment of orders-3 completed: replicas are now [2, 5]"
    )


def test_replicas_without_a_reassignment() -> None:
    assert said(HEALTHY, replicas=(5, 2, 1), directories=(B, A, C)) == [
        "replicas.reordered: replicas of orders-3 are in another order: [2, 5, 1] -> [5, 2, 1]; "
        "5 is now preferred as leader"
    ]
    assert said(ALONE, replicas=(2, 3), directories=(A, B)) == [
        "replicas.changed: replicas of orders-3 changed [2] -> [2, 3]"
    ]


def test_who_may_lead_though_out_of_sync() -> None:
    assert said(HEALTHY, elr=(5,)) == [
        "elr.changed: broker 5 is out of sync but eligible to lead orders-3 (ELR was none)"
    ]
    assert said(become(HEALTHY, elr=(5,)), elr=()) == [
        "elr.changed: nobody outside the ISR is eligible to lead orders-3 any more"
    ]
    assert said(become(HEALTHY, isr=(2,), elr=(1, 5)), elr=(1,)) == [
        "elr.changed: broker 5 is no longer eligible to lead orders-3 (ELR: 1)"
    ]
    # That it is no longer a replica has been said.
    away = become(HEALTHY, isr=(2,), elr=(5,))
    assert [
        change.kind
        for change in words.partition_changes(
            "orders", 3, away, become(away, replicas=(2, 1), directories=(A, C), elr=())
        )
        if not change.minor
    ] == ["replicas.changed"]
    assert said(HEALTHY, last_known_elr=(2,)) == [
        "elr.last-known: the last known ELR of orders-3 is now 2"
    ]


def test_directories_of_replicas() -> None:
    assert said(ALONE, directories=(B,)) == [
        f"directory.moved: orders-3 on broker 2 moved from directory {A} to {B}"
    ]
    assert said(ALONE, directories=(LOST,)) == [
        "directory.lost: the directory of orders-3 on broker 2 is lost"
    ]
    assert said(ALONE, directories=(UNASSIGNED,)) == [
        f"directory.unassigned: orders-3 on broker 2 is in no known directory any more (was in {A})"
    ]


BROKER = BrokerRegistration(
    id=2,
    epoch=10,
    incarnation_id=uuid(1),
    listeners=(Listener("PLAINTEXT", "h", 9092, 0), Listener("OUT", "::1", 9093, 3)),
    features=(SupportedFeature("metadata.version", 7, 29),),
    rack="a",
    fenced=False,
    directories=(A,),
)


def told(before: BrokerRegistration | None, after: BrokerRegistration | None) -> list[str]:
    found = words.broker_changes(2, before, after)
    assert all(change.brokers == (2,) for change in found)
    return [f"{change.kind}: {change.text}" for change in found]


def test_a_broker_comes_and_goes() -> None:
    assert told(None, replace(BROKER, fenced=True)) == [
        "broker.registered: broker 2 registered: PLAINTEXT://h:9092, OUT://[::1]:9093 (SASL_SSL), "
        "rack a; fenced until it has caught up"
    ]
    assert told(BROKER, None) == ["broker.unregistered: broker 2 was unregistered"]
    assert told(None, None) == []
    assert told(BROKER, BROKER) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"fenced": True}, "broker.fenced: broker 2 was fenced: no heartbeats came from it"),
        (
            {"in_controlled_shutdown": True},
            {"in_controlled_shutdown": True, "fenced": True},
            "broker.fenced: broker 2 was fenced: its controlled shutdown is done",
        ),
        ({"fenced": True}, {}, "broker.unfenced: broker 2 was unfenced: it is in service"),
        (
            {},
            {"in_controlled_shutdown": True},
            "broker.shutting-down: broker 2 began a controlled shutdown",
        ),
        (
            {"in_controlled_shutdown": True},
            {},
            "broker.shutdown-over: broker 2 is no longer shutting down",
        ),
        (
            {"fenced": True},
            {"fenced": True, "incarnation_id": uuid(9), "epoch": 20},
            "broker.restarted: broker 2 restarted with a new incarnation, fenced until it has "
            "caught up",
        ),
        (
            {},
            {"fenced": True, "incarnation_id": uuid(9), "epoch": 20},
            "broker.restarted: broker 2 restarted without a clean stop, fenced until it has "
            "caught up",
        ),
        (
            {},
            {"epoch": 20},
            "broker.reregistered: broker 2 registered again, as the same incarnation",
        ),
        ({}, {"rack": None}, "broker.rack: rack of broker 2: a -> none"),
        (
            {"listeners": (Listener("PLAINTEXT", "h", 1, 0),)},
            {"listeners": (Listener("PLAINTEXT", "h", 2, 0),)},
            "broker.endpoints: endpoints of broker 2: PLAINTEXT://h:1 -> PLAINTEXT://h:2",
        ),
        (
            {"directories": (A, B)},
            {},
            f"broker.directory.offline: broker 2 lost directory {B}",
        ),
        (
            {},
            {"directories": (A, B, C)},
            f"broker.directory.online: broker 2 has new directories {B}, {C}",
        ),
        (
            {},
            {"cordoned_directories": (A,)},
            f"broker.directory.cordoned: broker 2 cordoned directory {A}",
        ),
        (
            {"cordoned_directories": (A,)},
            {"cordoned_directories": ()},
            f"broker.directory.uncordoned: broker 2 opened directory {A} again",
        ),
        (
            {},
            {"features": ()},
            "broker.features: broker 2 supports other feature levels than before: another release?",
        ),
        (
            {"is_migrating_zk_broker": True},
            {},
            "broker.migration: broker 2 is no longer of the ZooKeeper cluster",
        ),
    ],
)
def test_what_happens_to_a_broker(
    before: dict[str, object], after: dict[str, object], expected: str
) -> None:
    assert told(replace(BROKER, **before), replace(BROKER, **after)) == [expected]


def test_no_cordoned_directories_is_no_news() -> None:
    assert told(BROKER, replace(BROKER, cordoned_directories=())) == []


def test_controllers() -> None:
    listeners = (Listener("CONTROLLER", "c", 9093, 0),)
    one = ControllerRegistration(
        id=3, incarnation_id=A, zk_migration_ready=False, listeners=listeners, features=()
    )
    moved = replace(one, listeners=(Listener("CONTROLLER", "d", 9093, 0),))
    for before, after, expected in (
        (None, one, "controller 3 registered: CONTROLLER://c:9093 (PLAINTEXT)"),
        (one, None, "controller 3 was unregistered"),
        (one, replace(one, incarnation_id=B), "controller 3 restarted with a new incarnation"),
        (
            one,
            replace(moved, incarnation_id=B),
            "controller 3 restarted with a new incarnation, now at CONTROLLER://d:9093 (PLAINTEXT)",
        ),
        (one, moved, "controller 3 registered again: CONTROLLER://d:9093 (PLAINTEXT)"),
    ):
        (change,) = words.controller_changes(3, before, after)
        assert change.text == expected
    assert words.controller_changes(3, one, one) == []


@pytest.mark.parametrize(
    ("resource", "key", "before", "after", "expected"),
    [
        (
            (2, "orders"),
            "retention.ms",
            "604800000",
            "86400000",
            "config.changed: retention.ms of topic orders: 7d -> 1d",
        ),
        (
            (2, "orders"),
            "segment.bytes",
            None,
            "1073741824",
            "config.set: segment.bytes of topic orders set to 1GiB",
        ),
        (
            (2, "orders"),
            "retention.bytes",
            "-1",
            None,
            "config.removed: retention.bytes of topic orders was removed (it was no limit)",
        ),
        (
            (4, ""),
            "compression.type",
            "lz4",
            "zstd",
            "config.changed: compression.type of all brokers: lz4 -> zstd",
        ),
        (
            (4, "2"),
            "listener.name.x.ssl.keystore.password",
            "old",
            "new",
            "config.changed: listener.name.x.ssl.keystore.password of broker 2: [hidden] -> "
            "[hidden]",
        ),
        ((8, "2"), "kafka", None, "DEBUG", "config.set: kafka of loggers of broker 2 set to DEBUG"),
        (
            (16, "s"),
            "interval.ms",
            None,
            "5000",
            "config.set: interval.ms of client metrics s set to 5s",
        ),
        ((32, "g"), "x", "1", "2", "config.changed: x of group g: 1 -> 2"),
        ((64, "z"), "x", "1", "", "config.changed: x of resource of type 64 z: 1 -> empty"),
    ],
)
def test_configs(
    resource: tuple[int, str], key: str, before: str | None, after: str | None, expected: str
) -> None:
    change = words.config_change(ConfigResource(*resource), key, before, after)
    assert change is not None
    assert f"{change.kind}: {change.text}" == expected
    assert "old" not in msgspec.json.encode(change).decode()


@pytest.mark.parametrize(("name", "brokers"), [("7", (7,)), ("", ()), ("²", ()), ("9" * 5000, ())])
def test_configs_of_what_is_no_broker_are_told_as_well(name: str, brokers: tuple[int, ...]) -> None:
    change = words.config_change(ConfigResource(4, name), "background.threads", None, "3")
    assert change is not None
    assert change.brokers == brokers


def test_a_config_set_again_is_no_change() -> None:
    assert words.config_change(ConfigResource(2, "t"), "k", "1", "1") is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, 30, "feature.set: metadata.version set to 4.3-IV0 (level 30)"),
        (
            29,
            30,
            "feature.raised: metadata.version raised 4.2-IV1 (level 29) -> 4.3-IV0 (level 30)",
        ),
        (7, 5, "feature.lowered: metadata.version lowered 3.3-IV3 (level 7) -> level 5"),
        (7, 0, "feature.removed: metadata.version was turned off (it was 3.3-IV3 (level 7))"),
    ],
)
def test_features(before: int | None, after: int, expected: str) -> None:
    change = words.feature_change("metadata.version", before, after)
    assert change is not None
    assert f"{change.kind}: {change.text}" == expected
    assert words.feature_change("group.version", None, 0) is None


@pytest.mark.parametrize(
    ("entity", "key", "before", "after", "expected"),
    [
        (
            (("user", "alice"),),
            "producer_byte_rate",
            None,
            1048576.0,
            "quota.set: producer_byte_rate of user alice limited to 1MiB/s",
        ),
        (
            (("client-id", None), ("user", "alice")),
            "request_percentage",
            12.5,
            200.0,
            "quota.changed: request_percentage of user alice with any client without its own: "
            "12.5% -> 200%",
        ),
        (
            (("ip", "10.0.0.1"),),
            "connection_creation_rate",
            10.0,
            None,
            "quota.removed: connection_creation_rate of address 10.0.0.1 is no longer limited "
            "(it was 10/s)",
        ),
    ],
)
def test_quotas(
    entity: tuple[tuple[str, str | None], ...],
    key: str,
    before: float | None,
    after: float | None,
    expected: str,
) -> None:
    change = words.quota_change(entity, key, before, after)
    assert change is not None
    assert f"{change.kind}: {change.text}" == expected


@pytest.mark.parametrize(
    ("acl", "expected"),
    [
        (Acl(2, "orders", 3, "User:alice", "*", 3, 3), "allow User:alice to read topic orders"),
        (
            Acl(2, "pay", 4, "User:bob", "10.0.0.1", 4, 2),
            "deny User:bob to write to topics that begin with pay from 10.0.0.1",
        ),
        (Acl(3, "*", 3, "User:*", "*", 2, 3), "allow everybody to do everything with any group"),
        (Acl(4, "kafka-cluster", 3, "User:o", "*", 7, 3), "allow User:o to alter the cluster"),
        (
            Acl(5, "tx", 3, "User:o", "*", 99, 3),
            "allow User:o to operation 99 on transactional id tx",
        ),
    ],
)
def test_acls(acl: Acl, expected: str) -> None:
    (added,) = words.acl_changes(None, acl)
    (removed,) = words.acl_changes(acl, None)
    assert (added.kind, added.text) == ("acl.added", f"ACL added: {expected}")
    assert (removed.kind, removed.text) == ("acl.removed", f"ACL removed: {expected}")
    assert words.acl_changes(acl, acl) == []


def test_scram_users_without_their_secrets() -> None:
    old = ScramCredential(b"salt-1", b"stored", b"server", 4096)
    new = replace(old, salt=b"salt-2", iterations=8192)
    texts = []
    for before, after in ((None, old), (old, new), (new, None)):
        change = words.scram_change((1, "alice"), before, after)
        assert change is not None
        assert b"salt" not in msgspec.json.encode(change)
        texts.append(f"{change.kind}: {change.text}")
    assert texts == [
        "scram.set: SCRAM-SHA-256 credentials of user alice set (4,096 iterations)",
        "scram.changed: SCRAM-SHA-256 credentials of user alice changed (8,192 iterations)",
        "scram.removed: SCRAM-SHA-256 credentials of user alice removed",
    ]


def test_delegation_tokens() -> None:
    old = DelegationToken("id", "User:a", "User:b", (), 0, 0, 1_772_334_000_000)
    new = replace(old, expiration_timestamp=1_772_334_060_000)
    texts = []
    for before, after in ((None, old), (old, new), (new, None)):
        change = words.token_change(before, after)
        assert change is not None
        texts.append(f"{change.kind}: {change.text}")
    assert texts == [
        "token.created: delegation token of User:a created, good until 2026-03-01 03:00:00Z",
        "token.renewed: delegation token of User:a renewed, good until 2026-03-01 03:01:00Z",
        "token.removed: delegation token of User:a removed or expired",
    ]


def test_topics() -> None:
    partitions = {0: HEALTHY, 1: HEALTHY}
    created = words.topic_created("orders", A, partitions, {"retention.ms": "3600000"})
    assert created.text == ("topic orders created: 2 partitions with 3 replicas; retention.ms 1h")
    assert words.topic_deleted("orders", A, {0: ALONE}).text == (
        "topic orders deleted (it had 1 partition with 1 replica)"
    )
    assert words.partitions_added("orders", {1: HEALTHY}, 2).text == (
        "topic orders got 1 partition more (1 -> 2): orders-1 on 2, 5, 1"
    )
    assert words.partitions_added("orders", partitions, 5).text == (
        "topic orders got 2 partitions more (3 -> 5)"
    )
    assert words.partitions_removed("orders", partitions).text == (
        "topic orders has 2 partitions less: 0, 1"
    )
    assert words.topic_created("x", A, {}).text == "topic x created: no partitions"
    assert "all topics" in words.elr_cleared("").text
    assert "topic orders" in words.elr_cleared("orders").text


def test_the_log_itself() -> None:
    messages = (
        LeaderChangeMessage(leader_id=3),
        VotersRecord(voters=(Voter(voter_id=2), Voter(voter_id=1))),
        KRaftVersionRecord(kraft_version=1),
        ZkMigrationStateRecord(zk_migration_state=3),
    )
    changes = [words.log_change(message, 9) for message in messages]
    assert [change and f"{change.kind}: {change.text}" for change in changes] == [
        "controller.elected: controller 3 became active, in epoch 9",
        "voters.set: the voters of the quorum are 1, 2",
        "feature.set: kraft.version is 1",
        "migration.state: the migration from ZooKeeper is done",
    ]
    assert words.log_change(NoOpRecord(), 9) is None


def test_transactions_that_did_not_count() -> None:
    assert words.transaction_change("t", 2, "aborted: failover").text == (
        "metadata transaction 't' with 2 records was aborted: failover"
    )
    open_one = words.transaction_change(None, 1, "open")
    assert open_one.kind == "transaction.open"
    assert open_one.text == (
        "a metadata transaction with 1 record is not ended yet: none of it counts"
    )


def test_producer_ids() -> None:
    change = words.producer_ids_change(0, 1000)
    assert change is not None
    assert change.text == "producer ids up to 999 were given to brokers"
    assert change.minor
    assert words.producer_ids_change(5, 5) is None


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0, "0"),
        (1, "1ms"),
        (1000, "1s"),
        (1500, "1s 500ms"),
        (60_000, "1min"),
        (90_000, "1min 30s"),
        (86_400_000, "1d"),
        (90_000_000, "1d 1h"),
        (86_400_001, "86,400,001ms"),
    ],
)
def test_durations_are_exact(ms: int, expected: str) -> None:
    assert duration(ms) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1KiB"),
        (1536, "1.5KiB"),
        (1_000_000, "1,000,000 bytes"),
        (1 << 30, "1GiB"),
    ],
)
def test_sizes_are_exact(count: int, expected: str) -> None:
    assert size(count) == expected


def test_values_whose_name_tells_no_unit() -> None:
    assert config_value("min.insync.replicas", "2") == "2"
    assert config_value("flush.messages", str(2**63 - 1)) == "no limit"
    assert config_value("retention.ms", "-1") == "no limit"
    assert config_value("retention.ms", "-2") == "-2"
    assert config_value("cleanup.policy", "") == "empty"
    assert config_value("log.retention.hours", "168") == "7d"
    assert config_value("retention.ms", "soon") == "soon"


def test_secrets_by_name() -> None:
    for key in ("ssl.key.password", "listener.name.a.plain.sasl.jaas.config", "ssl.keystore.key"):
        assert is_secret(key)
    assert not is_secret("retention.ms")

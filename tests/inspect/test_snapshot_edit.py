"""Edits do what they say and nothing else, and refuse to lose records in silence."""

from __future__ import annotations

import msgspec
import pytest

from kraftline.inspect.snapshots import (
    DeleteTopic,
    Edit,
    Edited,
    Refused,
    RemoveBroker,
    SetConfig,
    State,
    edit_state,
    for_release,
    parse_config,
    parse_unset,
    read_state,
)
from kraftline.metadata.features import from_release
from kraftline.metadata.image import EMPTY, MetadataDelta, Provenance
from kraftline.metadata.image.configs import BROKER, TOPIC, ConfigResource
from kraftline.metadata.image.metadata import PARTS
from kraftline.metadata.partition import PartitionRegistration
from kraftline.metadata.voters import parse_voters
from kraftline.schema.metadata import (
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint
from kraftline.schema.uuids import Uuid
from kraftline.storage.names import SnapshotId
from tests.inspect.damage import FIXTURES, METADATA

TOPIC_ID = Uuid(b"t" * 16)
DIRECTORIES = tuple(Uuid(bytes([n]) * 16) for n in range(10))


@pytest.fixture(scope="module")
def real() -> State:
    return read_state([str(METADATA)])


def cluster(*partitions: PartitionRecord, fenced: tuple[int, ...] = (), elr: bool = False) -> State:
    """Brokers 1 to 4, and a topic t."""
    delta = MetadataDelta(EMPTY)
    delta.replay(FeatureLevelRecord(name="metadata.version", feature_level=30))
    if elr:
        delta.replay(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    for broker in range(1, 5):
        endpoint = BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)
        delta.replay(
            RegisterBrokerRecord(
                broker_id=broker, end_points=(endpoint,), fenced=broker in fenced, broker_epoch=7
            )
        )
    delta.replay(TopicRecord(name="t", topic_id=TOPIC_ID))
    for number, each in enumerate(partitions):
        delta.replay(msgspec.structs.replace(each, partition_id=number, topic_id=TOPIC_ID))
    image = delta.apply(Provenance(99, 3, 1000, True))
    return State(image=image, id=SnapshotId(100, 3), log_time=1000)


def on(
    *replicas: int, isr: tuple[int, ...], leader: int, **more: tuple[int, ...]
) -> PartitionRecord:
    record = PartitionRecord(
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=5,
        partition_epoch=8,
        directories=tuple(DIRECTORIES[each] for each in replicas),
    )
    return msgspec.structs.replace(record, **more)


def after(edited: Edited, number: int = 0) -> PartitionRegistration:
    found = edited.state.image.topics.partition(TOPIC_ID, number)
    assert found is not None
    return found


def parts_changed(before: State, edited: Edited) -> set[str]:
    one, other = before.image, edited.state.image
    return {part for part in PARTS if getattr(one, part) != getattr(other, part)}


def test_a_deleted_topic_goes_with_its_configs_and_nothing_else_does(real: State) -> None:
    before = real.image
    edited = edit_state(real, [DeleteTopic("orders")])
    image = edited.state.image
    assert "orders" not in image.topics.ids
    assert dict(image.topics.by_id) == {
        id: topic for id, topic in before.topics.by_id.items() if topic.name != "orders"
    }
    gone = set(before.configs.resources) - set(image.configs.resources)
    assert gone <= {ConfigResource(TOPIC, "orders")}
    assert parts_changed(real, edited) <= {"topics", "configs"}
    assert [change.kind for change in edited.changes] == ["topic.deleted"]


def test_a_config_is_set_changed_and_removed(real: State) -> None:
    edits = [
        parse_config("topic:orders:segment.ms=12345"),
        parse_config("broker::log.retention.ms=1000"),
        parse_config("broker:1:log.cleaner.threads=2"),
    ]
    edited = edit_state(real, edits)
    configs = edited.state.image.configs
    assert configs.of(TOPIC, "orders")["segment.ms"] == "12345"
    assert configs.of(BROKER, "")["log.retention.ms"] == "1000"
    assert configs.of(BROKER, "1")["log.cleaner.threads"] == "2"
    assert parts_changed(real, edited) == {"configs"}
    back = edit_state(
        edited.state,
        [
            parse_unset("topic:orders:segment.ms"),
            parse_config("broker::log.retention.ms="),
            parse_unset("broker:1:log.cleaner.threads"),
        ],
    )
    assert back.state.image.configs == real.image.configs


def test_a_removed_broker_leaves_every_list_and_the_leaders_move_in_sync() -> None:
    before = cluster(
        on(3, 1, 2, isr=(3, 1, 2), leader=3),
        on(1, 3, isr=(1, 3), leader=1),
        on(1, 2, isr=(1, 2), leader=1),
    )
    edited = edit_state(before, [RemoveBroker(3)])
    assert 3 not in edited.state.image.cluster.brokers
    first, second, third = (after(edited, number) for number in range(3))
    assert (first.replicas, first.isr, first.leader) == ((1, 2), (1, 2), 1)
    assert first.directories == (DIRECTORIES[1], DIRECTORIES[2])
    assert (first.leader_epoch, first.partition_epoch) == (6, 9)
    assert (second.replicas, second.isr, second.leader) == ((1,), (1,), 1)
    assert (second.leader_epoch, second.partition_epoch) == (5, 9)
    assert third is before.image.topics.by_id[TOPIC_ID].partitions[2]
    assert parts_changed(before, edited) == {"cluster", "topics"}


def test_a_fenced_replica_does_not_lead_but_may_once_it_is_back() -> None:
    edited = edit_state(cluster(on(3, 1, isr=(3, 1), leader=3), fenced=(1,)), [RemoveBroker(3)])
    assert (after(edited).isr, after(edited).leader) == ((1,), -1)


def test_the_only_replica_is_not_dropped_in_silence() -> None:
    before = cluster(on(3, isr=(3,), leader=3), on(1, isr=(1,), leader=1))
    with pytest.raises(Refused, match="no other broker has") as refused:
        edit_state(before, [RemoveBroker(3)])
    assert refused.value.details == ("t-0",)
    assert "--delete-orphans" in str(refused.value)
    edited = edit_state(before, [RemoveBroker(3)], delete_orphans=True)
    assert edited.state.image.topics.is_empty
    said = "with 1 partition that other brokers have replicas of"
    assert any(said in note for note in edited.state.notes)


def test_replicas_that_are_not_in_sync_lead_only_when_told() -> None:
    before = cluster(on(3, 4, 2, isr=(3,), leader=3), fenced=(4,))
    with pytest.raises(Refused, match="no other broker in sync") as refused:
        edit_state(before, [RemoveBroker(3)])
    assert refused.value.details == ("t-0: others 4, 2; 2 would lead",)
    found = after(edit_state(before, [RemoveBroker(3)], unclean=True))
    assert (found.replicas, found.isr, found.leader) == ((4, 2), (2,), 2)
    assert found.leader_recovery_state == 1  # as after an unclean election


def test_eligible_leaders_are_elected_by_the_controller() -> None:
    before = cluster(
        on(3, 4, 2, isr=(3,), leader=3, eligible_leader_replicas=(4, 3)), fenced=(4,), elr=True
    )
    found = after(edit_state(before, [RemoveBroker(3)]))
    assert (found.isr, found.elr, found.leader) == ((), (4,), -1)


def test_without_eligible_leaders_those_who_were_are_in_sync() -> None:
    before = cluster(
        on(3, 4, 2, isr=(), leader=-1, eligible_leader_replicas=(4, 3)),
        on(1, 2, isr=(1,), leader=1, eligible_leader_replicas=(2,)),
        elr=True,
    )
    older, lost = for_release(before, from_release("3.9"))
    assert "the eligible leader replicas of one or more partitions" in lost
    topic = older.image.topics.by_id[TOPIC_ID]
    assert [each.isr for each in topic.partitions] == [(4, 3), (1,)]


def test_a_move_to_a_removed_broker_is_taken_back() -> None:
    moving = on(1, 2, 3, isr=(1, 2), leader=1, adding_replicas=(3,), removing_replicas=(1, 2))
    found = after(edit_state(cluster(moving), [RemoveBroker(3)]))
    assert (found.replicas, found.adding_replicas, found.removing_replicas) == ((1, 2), (), ())


def test_edits_combine_and_a_deleted_topic_has_no_orphans() -> None:
    before = cluster(on(3, isr=(3,), leader=3))
    edited = edit_state(before, [RemoveBroker(3), RemoveBroker(4), DeleteTopic("t")])
    assert set(edited.state.image.cluster.brokers) == {1, 2}
    assert edited.state.image.topics.is_empty


def test_a_broker_that_is_only_in_replica_lists_goes_too() -> None:
    before = cluster(on(1, 9, isr=(1,), leader=1))
    assert after(edit_state(before, [RemoveBroker(9)])).replicas == (1,)


def test_min_insync_replicas_makes_a_controller_forget_who_is_eligible() -> None:
    before = cluster(on(1, 2, isr=(1,), leader=1, eligible_leader_replicas=(2,)), elr=True)
    edited = edit_state(before, [parse_config("topic:t:min.insync.replicas=1")])
    assert (after(edited).elr, after(edited).partition_epoch) == ((), 9)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (DeleteTopic("order"), "did you mean orders"),
        (RemoveBroker(77), "no broker 77"),
        (parse_config("topic:nowhere:retention.ms=1"), "no topic nowhere"),
        (parse_unset("topic:orders:nothing.set"), "nothing.set is not set"),
    ],
)
def test_what_is_not_there_is_refused(real: State, edit: Edit, why: str) -> None:
    with pytest.raises(Refused) as refused:
        edit_state(real, [edit])
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("topic:orders:retention.ms=soon", "Invalid value soon for configuration retention.ms"),
        ("topic:orders:min.insync.replicas=0", "Value must be at least 1"),
        ("topic:orders:cleanup.policy=shred", "must be one of"),
        ("broker::log.cleaner.threads=many", "Not a number of type INT"),
        ("broker:1:listener.name.internal.max.connections=x", "Not a number of type INT"),
        ("group:g:consumer.session.timeout.ms=x", "Not a number of type INT"),
        ("client-metrics:m:interval.ms=x", "Not a number of type INT"),
    ],
)
def test_a_value_that_no_broker_could_read_is_refused(real: State, text: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        edit_state(real, [parse_config(text)])
    assert why in str(refused.value)


def test_a_key_that_kafka_does_not_know_is_set_with_a_note(real: State) -> None:
    edited = edit_state(real, [parse_config("topic:orders:retention.mss=1")])
    assert edited.state.image.configs.of(TOPIC, "orders")["retention.mss"] == "1"
    assert "did you mean retention.ms?" in edited.state.notes[-1]


def test_a_topic_is_not_both_deleted_and_set(real: State) -> None:
    with pytest.raises(Refused, match="is to be deleted"):
        edit_state(real, [DeleteTopic("orders"), parse_config("topic:orders:retention.ms=1")])


def test_an_edited_snapshot_has_an_epoch_of_its_own(real: State) -> None:
    edited = edit_state(real, [DeleteTopic("orders")])
    assert edited.state.id == SnapshotId(real.id.end_offset, real.election + 1)
    assert edited.state.id.epoch > real.id.epoch


def test_voters_that_stay_keep_what_the_log_says_and_others_lose_their_registration() -> None:
    before = read_state([str(FIXTURES / "upgraded_4_3" / "data" / "node-1")])
    assert before.voters is not None
    kept = before.voters.voters[0]
    endpoint = kept.endpoints[0]
    text = f"{kept.voter_id}@{endpoint.host}:{endpoint.port}:{kept.voter_directory_id}"
    edited = edit_state(before, [], voters=parse_voters(text))
    assert edited.state.voters is not None
    assert edited.state.voters.voters == (kept,)
    gone = {each.voter_id for each in before.voters.voters[1:]}
    assert gone
    assert (
        set(edited.state.image.cluster.controllers) == set(before.image.cluster.controllers) - gone
    )
    assert len(edited.quorum) == len(gone)
    assert all("no longer a voter" in line for line in edited.quorum)


def test_a_static_quorum_of_an_old_release_has_no_voters_to_edit() -> None:
    before = read_state([str(FIXTURES / "metadata_3_3" / "data" / "node-1")])
    with pytest.raises(Refused, match=r"controller\.quorum\.voters"):
        edit_state(before, [], voters=parse_voters("1@h:9093:AAAAAAAAAAAAAAAAAAAB_A"))


@pytest.mark.parametrize(
    "text",
    ["orders:retention.ms=1", "topic:orders", "topic::x=1", "tpoic:a:b=1", "broker:x:y=1", "a=b"],
)
def test_a_config_in_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_config(text)


def test_values_and_groups_may_have_colons() -> None:
    assert parse_config("group:a:b:session.timeout.ms=5:6=7") == SetConfig(
        ConfigResource(32, "a:b"), "session.timeout.ms", "5:6=7"
    )

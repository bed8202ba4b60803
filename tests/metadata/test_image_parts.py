"""The other parts of an image: features, cluster, configs, quotas, ACLs, users, tokens."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import pytest

from kraftline.metadata.faults import ReplayError, UnwritableMetadata
from kraftline.metadata.features import from_level
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.metadata import PARTS
from kraftline.metadata.registrations import BrokerRegistration
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema import metadata as m
from kraftline.schema.metadata.client_quota_record import EntityData
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint
from kraftline.schema.metadata.registry import record_classes
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.metadata.replaying import replay, state

TOPIC = Uuid(b"\1" * 16)
LOW, HIGH = Uuid(b"\x01" * 16), Uuid(b"\xf0" * 16)


def config(name: str, key: str, value: str | None, kind: int = 2) -> m.ConfigRecord:
    return m.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def register(**fields: Any) -> m.RegisterBrokerRecord:
    point = BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)
    return m.RegisterBrokerRecord(
        broker_id=1, broker_epoch=10, end_points=(point,), rack=None, **fields
    )


def broker(*records: Message) -> BrokerRegistration:
    return replay([register(), *records]).cluster.brokers[1]


def change(**fields: Any) -> m.BrokerRegistrationChangeRecord:
    return m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, **fields)


def test_every_record_type_is_replayed_or_refused_on_purpose() -> None:
    refused = set()
    for name, cls in record_classes().items():
        try:
            MetadataDelta(EMPTY).replay(cls())
        except ReplayError as error:
            if "Unknown metadata record type" in error.reason:
                refused.add(name)
    assert refused == {
        "BEGIN_TRANSACTION_RECORD",
        "END_TRANSACTION_RECORD",
        "ABORT_TRANSACTION_RECORD",
    }


def test_broker_change_keeps_what_it_does_not_name() -> None:
    before = broker()
    assert before.fenced
    assert broker(change()) == before
    assert not broker(change(fenced=-1)).fenced
    assert broker(change(fenced=-1), change(fenced=1)) == before
    assert broker(change(in_controlled_shutdown=1)).in_controlled_shutdown
    assert broker(change(log_dirs=(LOW,)), change()).directories == (LOW,)
    assert broker(change(cordoned_log_dirs=(LOW,)), change()).cordoned_directories == (LOW,)
    assert broker(
        change(cordoned_log_dirs=(LOW,)), change(cordoned_log_dirs=())
    ).has_uncordoned_directories


def test_directories_are_in_the_order_of_java() -> None:
    # As signed numbers, a leading 0xf0 comes first.
    assert broker(change(log_dirs=(LOW, HIGH))).directories == (HIGH, LOW)


def test_cordoned_directories() -> None:
    both = change(log_dirs=(LOW, HIGH))
    assert broker(both).has_uncordoned_directories
    assert broker(both, change(cordoned_log_dirs=(LOW,))).has_uncordoned_directories
    assert not broker(both, change(cordoned_log_dirs=(LOW, HIGH))).has_uncordoned_directories


def test_online_directories() -> None:
    known = broker(change(log_dirs=(LOW,)))
    unassigned, lost = Uuid(bytes(15) + b"\1"), Uuid(bytes(15) + b"\2")
    assert known.has_online_directory(LOW)
    assert known.has_online_directory(unassigned)
    assert not known.has_online_directory(HIGH)
    assert not known.has_online_directory(lost)
    assert broker().has_online_directory(HIGH)
    assert not broker().has_online_directory(lost)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (m.FenceBrokerRecord(id=9, epoch=1), "Tried to fence broker 9, but that broker was not"),
        (
            m.UnfenceBrokerRecord(id=1, epoch=11),
            "Tried to unfence broker 1, but the given epoch, 11",
        ),
        (change(fenced=2), "unknown value for fenced field: 2"),
        (change(in_controlled_shutdown=2), "unknown value for inControlledShutdown field: 2"),
        (register().__class__(end_points=(BrokerEndpoint(),)), r"Broker listeners must be named\."),
    ],
)
def test_broker_record_that_does_not_fit_is_refused(record: Message, reason: str) -> None:
    with pytest.raises(ReplayError, match=reason):
        broker(record)


def test_unregistering_looks_at_no_epoch_and_knows_no_stranger() -> None:
    records: list[Message] = [register(), m.UnregisterBrokerRecord(broker_id=1, broker_epoch=999)]
    image = replay([*records, m.UnregisterBrokerRecord(broker_id=5)])
    assert image.cluster.is_empty
    assert image.cluster.broker_epoch(1) == -1


def test_controllers_come_and_go() -> None:
    image = replay([m.RegisterControllerRecord(controller_id=3000)])
    assert set(image.cluster.controllers) == {3000}
    assert (
        replay([m.UnregisterControllerRecord(controller_id=3000)], image).cluster == EMPTY.cluster
    )


def test_features_of_level_0_are_off_and_kraft_version_lives_elsewhere() -> None:
    def level(name: str, number: int) -> Message:
        return m.FeatureLevelRecord(name=name, feature_level=number)

    image = replay([level("metadata.version", 30), level("group.version", 1)])
    assert image.features.metadata_version == from_level(30)
    assert dict(image.features.levels) == {"group.version": 1}
    assert replay([level("kraft.version", 1)], image) is image
    assert not replay([level("group.version", 0)], image).features.levels
    assert replay([level("eligible.leader.replicas.version", 1)], image).features.elr_enabled


def test_unknown_metadata_version_says_what_to_do() -> None:
    record = m.FeatureLevelRecord(name="metadata.version", feature_level=6)
    with pytest.raises(ReplayError, match="if you are currently upgrading your cluster"):
        replay([record])


def test_metadata_version_change_reaches_every_part() -> None:
    delta = MetadataDelta(EMPTY)
    delta.replay(m.FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert all(getattr(delta, part) is not None for part in PARTS)
    assert delta.metadata_version_changed == from_level(30)
    after = delta.apply(EMPTY.provenance)
    assert all(getattr(after, p) is getattr(EMPTY, p) for p in PARTS if p != "features")


def test_config_of_null_goes_and_so_does_a_resource_without_keys() -> None:
    image = replay([config("a", "k", "v"), config("a", "l", "w")])
    assert dict(image.configs.of(2, "a")) == {"k": "v", "l": "w"}
    assert dict(replay([config("a", "k", None)], image).configs.of(2, "a")) == {"l": "w"}
    assert replay([config("a", "k", None), config("a", "l", None)], image).configs.is_empty
    assert replay([config("a", "k", "v")], image) is image


def test_configs_that_this_software_does_not_know_are_passed_over() -> None:
    delta = MetadataDelta(EMPTY, lambda kind, name: name == "known")
    delta.replay(config("a", "known", "1"))
    delta.replay(config("a", "future", "2"))
    assert dict(delta.apply(EMPTY.provenance).configs.of(2, "a")) == {"known": "1"}


def test_removed_topic_takes_its_configs_along() -> None:
    made: list[Message] = [m.TopicRecord(name="a", topic_id=TOPIC), config("a", "k", "v")]
    gone = m.RemoveTopicRecord(topic_id=TOPIC)
    before = replay([config("", "k", "v", kind=4)])
    image = replay(made, before)
    assert replay([gone], image).configs == before.configs
    # Set and removed inside one delta, where Kafka's own delta forgets them.
    assert replay([*made, gone], before).configs is before.configs
    assert replay([config("a", "l", "w"), gone], image).configs == before.configs
    # Made again, it starts with none.
    again = [gone, m.TopicRecord(name="a", topic_id=LOW), config("a", "n", "1")]
    assert dict(replay(again, image).configs.of(2, "a")) == {"n": "1"}


def quota(
    entity: Iterable[tuple[str, str | None]], key: str, value: float, remove: bool = False
) -> m.ClientQuotaRecord:
    named = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    return m.ClientQuotaRecord(entity=named, key=key, value=value, remove=remove)


def test_quota_entity_has_no_order_and_null_is_the_default() -> None:
    pair = [("user", "u"), ("client-id", None)]
    image = replay([quota(pair, "rate", 1.0), quota(pair[::-1], "rate", 2.0)])
    assert dict(image.client_quotas.entities) == {
        (("client-id", None), ("user", "u")): {"rate": 2.0}
    }
    assert replay([quota(pair, "rate", 0.0, remove=True)], image).client_quotas.is_empty


def test_acl_removed_twice_is_refused() -> None:
    image = replay([m.AccessControlEntryRecord(id=LOW, principal="User:x")])
    gone = m.RemoveAccessControlEntryRecord(id=LOW)
    after = replay([gone], image)
    assert after.acls.is_empty
    with pytest.raises(ReplayError, match="Failed to find existing ACL with ID"):
        replay([gone], after)
    added_and_removed = [
        m.AccessControlEntryRecord(id=HIGH),
        m.RemoveAccessControlEntryRecord(id=HIGH),
    ]
    assert replay(added_and_removed, image) is image


def test_users_and_tokens_that_are_not_there_may_be_removed() -> None:
    user = m.UserScramCredentialRecord(name="x", mechanism=1, salt=b"s", iterations=4096)
    token = m.DelegationTokenRecord(owner="User:o", requester="User:r", token_id="t")
    image = replay([user, token])
    none: list[Message] = [
        m.RemoveUserScramCredentialRecord(name="x", mechanism=2),
        m.RemoveDelegationTokenRecord(token_id="u"),
    ]
    assert replay(none, image) is image
    some: list[Message] = [
        m.RemoveUserScramCredentialRecord(name="x", mechanism=1),
        m.RemoveDelegationTokenRecord(token_id="t"),
    ]
    assert replay(some, image) == EMPTY


def test_secrets_are_not_printed() -> None:
    user = m.UserScramCredentialRecord(name="x", mechanism=1, salt=b"secret", stored_key=b"secret")
    token = m.DelegationTokenRecord(owner="User:o", requester="User:r", token_id="secret")
    image = replay([user])
    assert "secret" not in repr(image)
    assert "secret" not in repr(list(replay([token]).delegation_tokens.tokens.values()))


def test_snapshot_drops_everything_it_does_not_name_but_the_producer_id_and_the_version() -> None:
    image = replay(
        [
            m.FeatureLevelRecord(name="metadata.version", feature_level=30),
            m.FeatureLevelRecord(name="group.version", feature_level=1),
            register(),
            m.RegisterControllerRecord(controller_id=3000),
            m.TopicRecord(name="a", topic_id=TOPIC),
            config("a", "k", "v"),
            quota([("user", "u")], "rate", 1.0),
            m.ProducerIdsRecord(next_producer_id=1000),
            m.AccessControlEntryRecord(id=LOW),
            m.UserScramCredentialRecord(name="x", mechanism=1),
            m.DelegationTokenRecord(owner="User:o", requester="User:r", token_id="t"),
        ]
    )
    assert not any(getattr(image, part).is_empty for part in PARTS)
    delta = MetadataDelta(image)
    delta.finish_snapshot()
    after = delta.apply(Provenance(5, 1, 2, True))
    assert after.features.metadata_version == from_level(30)
    assert not after.features.levels
    assert after.producer_ids is image.producer_ids
    assert [part for part in PARTS if not getattr(after, part).is_empty] == [
        "features",
        "producer_ids",
    ]
    assert not after.cluster.controllers


def test_image_without_a_metadata_version_cannot_say_how_to_be_written() -> None:
    with pytest.raises(UnwritableMetadata, match="the metadata version"):
        EMPTY.write_options()


def test_losses_are_all_told_before_the_first_record() -> None:
    image = replay(
        [
            m.FeatureLevelRecord(name="metadata.version", feature_level=30),
            register(log_dirs=(LOW,), cordoned_log_dirs=()),
            m.RegisterControllerRecord(controller_id=3000),
            m.UserScramCredentialRecord(name="x", mechanism=1),
            m.UserScramCredentialRecord(name="y", mechanism=2),
            m.DelegationTokenRecord(owner="User:o", requester="User:r", token_id="t"),
        ]
    )
    with pytest.raises(UnwritableMetadata) as error:
        image.write(WriteOptions(from_level(7)))
    assert str(error.value) == (
        "Metadata has been lost because the following could not be represented in "
        "metadata.version 3.3-IV3: the online log directories of one or more brokers, "
        "the cordoned log directories of one or more brokers, controller registration data, "
        "ScramImage({SCRAM_SHA_256:x},{SCRAM_SHA_512:y},{}), DelegationTokenImage(t)"
    )
    lost: list[str] = []
    kept = [message for message, _ in image.write(WriteOptions(from_level(7), False, lost.append))]
    assert tuple(lost) == error.value.lost
    assert [type(message) for message in kept] == [m.FeatureLevelRecord, m.RegisterBrokerRecord]
    assert list(image.write(image.write_options()))


def test_metadata_version_is_written_first_in_version_0() -> None:
    image = replay([m.FeatureLevelRecord(name="a", feature_level=1), register()])
    first, *_ = image.write(WriteOptions(from_level(26)))
    assert first == (m.FeatureLevelRecord(name="metadata.version", feature_level=26), 0)


def test_same_state_is_written_the_same() -> None:
    records: list[Message] = [config(name, key, "v") for name in "cab" for key in "ki"]
    one, other = replay(records), replay(records[::-1])
    assert list(one.write(OPTIONS)) == list(other.write(OPTIONS))
    assert state(one) == state(other)


OPTIONS = WriteOptions(from_level(30))


def test_image_knows_where_it_ends() -> None:
    where = Provenance(7, 2, 1000, True)
    image = MetadataDelta(EMPTY).apply(where)
    assert (image.offset, image.provenance) == (7, where)
    assert image.is_empty
    assert MetadataImage() == EMPTY
    assert MetadataDelta(image).apply(where) is image


def test_delta_is_freed_without_the_collector() -> None:
    """What holds itself holds its images too, for as long as no collection comes."""
    records: list[Message] = [
        m.FeatureLevelRecord(name="metadata.version", feature_level=30),
        m.TopicRecord(name="a", topic_id=TOPIC),
        m.RemoveTopicRecord(topic_id=TOPIC),
        register(),
    ]
    gc.collect()
    gc.disable()
    try:
        replay(records)
        assert gc.collect() == 0
    finally:
        gc.enable()

"""What is read from the log is what every record of it, one after the other, comes to."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kraftline.broker.coordinators.groups.classic.records import empty_group_record
from kraftline.broker.coordinators.groups.offsets import (
    Committed,
    commit_pair,
    commit_record,
    offset_keys,
    tombstone,
)
from kraftline.broker.coordinators.state import Change, Producer
from kraftline.records import Codec, Record, build_batch
from kraftline.records.control import build_end_txn_batch
from kraftline.schema.coordinator.frame import OFFSETS, encode_key, encode_value
from kraftline.schema.coordinator.group.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from kraftline.schema.coordinator.group.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from kraftline.schema.types import ZERO
from kraftline.schema.uuids import Uuid
from tests.effort import rounds
from tests.groups.states import NOW, empty_state, loaded_from, told

GROUPS = st.sampled_from(["a", "b", "group with ü"])
TOPICS = st.sampled_from(["t", "a-long-name-of-a-topic"])
PARTITIONS = st.integers(0, 2)
SOME_ID = Uuid(b"0123456789abcdef")
NOTES = st.sampled_from(["", "", "note", "ünï", "x" * 200])
COMMITTED = st.one_of(
    st.builds(
        Committed,
        st.integers(0, 2**40),
        st.integers(-1, 5),
        NOTES,
        st.just(NOW),
        topic_id=st.sampled_from([ZERO, SOME_ID]),
    ),
    st.builds(Committed, st.integers(0, 9), st.just(-1), NOTES, st.just(NOW), st.just(NOW + 5)),
)
COMMITS = st.builds(commit_record, GROUPS, TOPICS, PARTITIONS, COMMITTED)
TOMBSTONES = st.builds(tombstone, GROUPS, TOPICS, PARTITIONS)
OLD = st.builds(
    lambda group, topic, partition, offset: Change(
        LegacyOffsetCommitKey(group=group, topic=topic, partition=partition),
        LegacyOffsetCommitValue(offset=offset, metadata="old", commit_timestamp=NOW),
        0,
    ),
    GROUPS,
    TOPICS,
    PARTITIONS,
    st.integers(0, 100),
)
JOINED = st.builds(
    lambda group, generation: Change(
        GroupMetadataKey(group=group),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=generation,
            protocol="range",
            leader="m",
            members=(MemberMetadata(member_id="m", session_timeout=10, subscription=b"x"),),
        ),
        3,
    ),
    GROUPS,
    st.integers(1, 9),
)
NEW_GROUPS = st.builds(lambda group: empty_group_record(group, NOW), GROUPS)
PLAIN = st.one_of(COMMITS, COMMITS, COMMITS, TOMBSTONES, OLD, JOINED, NEW_GROUPS)
# Batches of no transaction, of one (by producer), and how one ends.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.lists(PLAIN, min_size=1, max_size=5)),
        st.tuples(st.just("plain"), st.lists(PLAIN, min_size=1, max_size=5)),
        st.tuples(st.sampled_from([1, 2]), st.lists(COMMITS, min_size=1, max_size=3)),
        st.tuples(st.sampled_from([1, 2]), st.booleans()),
    ),
    max_size=25,
)


def _batch(changes: list[Change], at: int, **fields: Any) -> bytes:
    return build_batch(
        [
            Record(
                at + n,
                NOW,
                encode_key(OFFSETS, each.key),
                None if each.value is None else encode_value(OFFSETS, each.value, each.version),
            )
            for n, each in enumerate(changes)
        ],
        **fields,
    )


@settings(max_examples=rounds(150), deadline=None)
@given(STEPS, st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.ZSTD]))
def test_loading_equals_replaying_every_record(steps: list[Any], codec: Codec) -> None:
    expected = empty_state()
    batches: list[bytes] = []
    at = 0
    for who, what in steps:
        producer = None if who == "plain" else Producer(who, 0)
        if isinstance(what, bool):
            assert producer is not None
            batches.append(
                build_end_txn_batch(
                    commit=what,
                    base_offset=at,
                    timestamp=NOW,
                    producer_id=producer.id,
                    producer_epoch=0,
                    coordinator_epoch=0,
                )
            )
            expected.end_transaction(producer, is_committed=what)
            at += 1
            continue
        fields: dict[str, Any] = {"codec": codec}
        if producer is not None:
            fields |= {"producer_id": producer.id, "producer_epoch": 0, "base_sequence": 0}
            fields["is_transactional"] = True
        batches.append(_batch(what, at, **fields))
        for each in what:
            expected.replay(each, producer)
        at += len(what)
    assert told(loaded_from(batches).state) == told(expected)


@given(GROUPS, TOPICS, PARTITIONS, COMMITTED)
def test_commits_made_by_hand_are_those_of_the_schema(
    group: str, topic: str, partition: int, committed: Committed
) -> None:
    change = commit_record(group, topic, partition, committed)
    assert change.value is not None
    key, value = commit_pair(offset_keys(group, topic)(partition), committed)
    assert key == encode_key(OFFSETS, change.key)
    assert value == encode_value(OFFSETS, change.value, change.version)


def test_what_removes_an_offset_takes_along_what_is_pending() -> None:
    committed = commit_record("g", "t", 0, Committed(7, 0, "", NOW))
    transactional = _batch(
        [committed], 0, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    loaded = loaded_from([transactional, _batch([tombstone("g", "t", 0), committed], 1)])
    assert not loaded.state.offsets.is_pending("g", "t", 0)
    assert loaded.state.offsets.of["g"]["t"][0].offset == 7


def test_foreign_records_are_passed_over_and_counted() -> None:
    good = commit_record("g", "t", 0, Committed(7, 0, "", NOW))
    assert good.value is not None
    key, value = encode_key(OFFSETS, good.key), encode_value(OFFSETS, good.value, 4)
    foreign = [
        (None, b"no key"),
        (b"", b"an empty key"),
        (b"\0", b"half a kind"),
        (b"\x7f\xff", b"of no kind"),
        (b"\0\x63later", b"a kind of later"),
        (b"\0\1\0\x05g", b"a key that is cut"),
        (key + b"\0", value),
        (b"\0\2\0\x01h", b"\0\x63of a version of later"),
        (encode_key(OFFSETS, tombstone("g", "t", 1).key), b"\0\4\0"),
        (encode_key(OFFSETS, tombstone("g", "t", 2).key), b""),
        (b"\0\1\0\x01\xff\0\x01t\0\0\0\0", value),
    ]
    records = [Record(n, NOW, *each) for n, each in enumerate([*foreign, (key, value)])]
    loaded = loaded_from([build_batch(records)])
    assert loaded.progress.foreign == len(foreign)
    assert loaded.progress.records == len(records)
    assert told(loaded.state) == (
        {("g", "t", 0): (7, 0, "", NOW, -1, ZERO)},
        {},
        {"g": (None, None, 0, None, "Empty", [])},
    )


def test_the_newest_counts_whenever_its_transaction_ends() -> None:
    state = empty_state()
    first, second = Producer(1, 0), Producer(2, 3)
    old = commit_record("g", "t", 0, Committed(1, 0, "", NOW))
    state.replay(old, first)
    state.replay(commit_record("g", "t", 0, Committed(2, 0, "", NOW)), None)
    assert state.offsets.is_pending("g", "t", 0)
    state.end_transaction(first, is_committed=True)
    assert not state.offsets.is_pending("g", "t", 0)
    assert state.offsets.of["g"]["t"][0].offset == 2
    state.replay(commit_record("g", "t", 0, Committed(3, 0, "", NOW)), first)
    state.replay(commit_record("g", "t", 0, Committed(4, 0, "", NOW)), second)
    # The marker of an aborted transaction may have a later epoch.
    state.end_transaction(Producer(2, 4), is_committed=False)
    assert state.offsets.is_pending("g", "t", 0)
    state.end_transaction(first, is_committed=True)
    assert state.offsets.of["g"]["t"][0].offset == 3
    assert not state.offsets.has_open_transaction("g")

"""Offsets of groups that are committed in transactions, and what the coordinators' topics say."""

from __future__ import annotations

from typing import Any

from kraftline.schema.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kraftline.schema.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftline.schema.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftline.schema.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kraftline.schema.coordinator.frame import OFFSETS, TRANSACTIONS
from tests.broker.transactions.telling import Teller, add, end, initialise, write


def add_offsets(id: str, who: tuple[int, int], group: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=id, producer_id=who[0], producer_epoch=who[1], group_id=group
    )


def commit(
    id: str,
    who: tuple[int, int],
    group: str,
    *offsets: tuple[str, int, int],
    metadata: str | None = "",
    **fields: Any,
) -> TxnOffsetCommitRequest:
    names = dict.fromkeys(name for name, _, _ in offsets)
    return TxnOffsetCommitRequest(
        transactional_id=id,
        producer_id=who[0],
        producer_epoch=who[1],
        group_id=group,
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offset,
                        committed_metadata=metadata,
                    )
                    for each, number, offset in offsets
                    if each == name
                ),
            )
            for name in names
        ),
        **fields,
    )


def plain_commit(group: str, topic: str, offset: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=(
                    OffsetCommitRequestPartition(partition_index=0, committed_offset=offset),
                ),
            ),
        ),
    )


def committed(group: str, topic: str, *, stable: bool = False) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id=group,
                topics=(OffsetFetchRequestTopics(name=topic, partition_indexes=(0, 1)),),
            ),
        ),
        require_stable=stable,
    )


def _look(broker: Teller, group: str, topic: str) -> list[object]:
    return [
        broker.ask(committed(group, topic), 8),
        broker.ask(committed(group, topic, stable=True), 8),
    ]


def offsets_in_every_version(broker: Teller) -> list[object]:
    topic, _ = broker.topic("offsets", partitions=2)
    id, group = broker.id("offsets"), broker.group("readers")
    who = broker.begin(id)
    said: list[object] = []
    offset = 10
    for version in (0, 1, 2, 3, 4):
        said.append(broker.ask(commit(id, who, group, (topic, 0, offset)), version))  # too early
        said.append(broker.ask(add_offsets(id, who, group), version))
        said.append(broker.settled(id))
        said.append(broker.ask(commit(id, who, group, (topic, 0, offset)), version))
        said.append(
            broker.ask(
                commit(id, who, group, (topic, 1, offset + 1), (topic, 9, 3), ("nowhere", 0, 1)),
                version,
            )
        )
        said += _look(broker, group, topic)
        said.append(broker.ended(id, who, version % 2 == 0, 4)[0])
        said += _look(broker, group, topic)
        offset += 10
    for commits in (True, False):
        said.append(broker.ask(commit(id, who, group, (topic, 0, offset)), 5))
        said.append(broker.settled(id))
        said += _look(broker, group, topic)
        told, who = broker.ended(id, who, commits, 5)
        said.append(told)
        said += _look(broker, group, topic)
        offset += 10
    said += broker.log(TRANSACTIONS, id)
    said += broker.log(OFFSETS, group)
    return said


def odd_offsets(broker: Teller) -> list[object]:
    topic, _ = broker.topic("odd-offsets", partitions=2)
    id, group, other = broker.id("odd-offsets"), broker.group("odd"), broker.name("unknown")
    broker.begin(id)
    who = broker.begin(id)
    old, wrong = (who[0], who[1] - 1), (who[0] + 1_000_000, 0)
    said: list[object] = []
    for version in (0, 1, 2, 3, 4):
        said += [
            broker.ask(add_offsets(id, old, group), version),
            broker.ask(add_offsets(id, wrong, group), version),
            broker.ask(add_offsets(other, who, group), version),
            broker.ask(add_offsets("", who, group), version),
        ]
    for version in (0, 1, 2, 3, 4, 5):
        said += [
            broker.ask(commit(id, old, group, (topic, 0, 1)), version),
            broker.ask(commit(id, wrong, group, (topic, 0, 1)), version),
            broker.ask(commit(other, who, group, (topic, 0, 1)), version),
            broker.ask(commit("", who, group, (topic, 0, 1)), version),
            broker.ask(commit(id, who, "", (topic, 0, 1)), version),
            broker.ask(commit(id, who, group, ("nowhere", 0, 1)), version),
            broker.ask(commit(id, who, group), version),
        ]
    said.append(broker.ask(add_offsets(id, who, group), 4))
    for version in (3, 4, 5):
        said += [
            broker.ask(commit(id, who, group, (topic, 0, 1), generation_id=3), version),
            broker.ask(
                commit(id, who, group, (topic, 0, 1), generation_id=3, member_id="me"), version
            ),
            broker.ask(commit(id, who, group, (topic, 0, 1), member_id="me"), version),
            broker.ask(commit(id, who, group, (topic, 0, 1), group_instance_id="me"), version),
            broker.ask(commit(id, who, group, (topic, 0, 1), metadata="x" * 5000), version),
            broker.ask(commit(id, who, group, (topic, 0, 2), metadata=None), version),
        ]
        said += _look(broker, group, topic)
    # Others commit in between, inside and outside of transactions: what is newer counts.
    said.append(broker.ask(plain_commit(group, topic, 77), 8))
    said += _look(broker, group, topic)
    second = broker.id("second")
    another = broker.begin(second)
    said.append(broker.ask(commit(second, another, group, (topic, 0, 99)), 5))
    said.append(broker.ended(id, who, True, 5)[0])
    said += _look(broker, group, topic)
    said.append(broker.ended(second, another, False, 5)[0])
    said += _look(broker, group, topic)
    return said


def what_the_log_says(broker: Teller) -> list[object]:
    topic = broker.topic("logged", partitions=3)
    id, new = broker.id("logged"), broker.id("logged-new")
    who = broker.begin(id, timeout_ms=30_000)
    broker.ask(add(id, who, (topic[0], 0)), 3)
    broker.ask(add(id, who, (topic[0], 2), (topic[0], 1)), 3)
    broker.ended(id, who, True, 4)
    broker.ask(initialise(id, 20_000, who), 5)
    who = broker.begin(id)
    broker.ask(add(id, who, (topic[0], 1)), 3)
    broker.ask(initialise(id), 5)  # fences what is going on
    broker.settled(id)
    who = broker.begin(id)
    broker.ask(end(id, who, False), 5)
    broker.settled(id)
    who = broker.begin(new)
    for commits in (True, False):
        broker.ask(write(topic, new, who), 12)
        broker.ask(write(topic, new, who, partition=1), 12)
        _, who = broker.ended(new, who, commits, 5)
    broker.ask(write(topic, new, who), 12)
    broker.ask(initialise(new), 5)
    broker.settled(new)
    broker.begin(new)
    return [*broker.log(TRANSACTIONS, id), *broker.log(TRANSACTIONS, new), *broker.look(topic)]


STORIES = (offsets_in_every_version, odd_offsets, what_the_log_says)

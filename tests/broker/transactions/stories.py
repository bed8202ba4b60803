"""What happens to transactions: valid things, odd things, in every version."""

from __future__ import annotations

import msgspec

from kraftline.schema.api.add_partitions_to_txn import AddPartitionsToTxnRequest
from kraftline.schema.api.describe_transactions import DescribeTransactionsRequest
from kraftline.schema.api.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kraftline.schema.api.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.stories import produce
from tests.broker.transactions.telling import (
    Teller,
    add,
    added,
    end,
    initialise,
    records,
    write,
)


def producers_begin_in_every_version(broker: Teller) -> list[object]:
    id = broker.id("begin")
    said = [broker.ask(initialise(id), version) for version in (0, 1, 2, 3, 4, 5)]
    return [*said, broker.settled(id)]


def odd_beginnings(broker: Teller) -> list[object]:
    id = broker.id("odd")
    said = []
    for version in (0, 3, 4, 5):
        said += [
            broker.ask(initialise("", 60_000), version),
            broker.ask(initialise(id, 0), version),
            broker.ask(initialise(id, -1), version),
            broker.ask(initialise(id, 900_001), version),
        ]
    who = broker.begin(id)
    for version in (3, 4, 5):
        said += [
            broker.ask(initialise(id, who=(-1, 3)), version),
            broker.ask(initialise(id, who=(who[0], -1)), version),
            broker.ask(initialise(id, who=(who[0] + 1_000_000, who[1])), version),
            broker.ask(initialise(id, who=(who[0], who[1] + 5)), version),
            broker.ask(initialise(id, who=(who[0], who[1] - 2)), version),
            # The right one, and the same again: it is told the same again.
            broker.ask(initialise(id, who=who), version),
            broker.ask(initialise(id, who=who), version),
        ]
        who = broker.begin(id)
    # Of an id that nobody knows, whoever it says it was.
    said.append(broker.ask(initialise(broker.name("new"), who=(who[0], 4)), 5))
    return said


def partitions_are_added_in_every_version(broker: Teller) -> list[object]:
    topic, _ = broker.topic("added", partitions=3)
    id = broker.id("adding")
    who = broker.begin(id)
    said: list[object] = []
    for version in (0, 1, 2, 3):
        said += [
            broker.ask(add(id, who, (topic, 0)), version),
            broker.ask(add(id, who, (topic, 0), (topic, 1)), version),
            broker.ask(add(id, who, (topic, 1), (topic, 7), ("nowhere", 0)), version),
            broker.ask(add(id, who, ("__consumer_offsets", 0), (topic, 2)), version),
            broker.ask(add(id, (who[0], who[1] + 1), (topic, 0)), version),
            broker.ask(add(id, (who[0], who[1] - 1), (topic, 0)), version),
            broker.ask(add(id, (who[0] + 1_000_000, who[1]), (topic, 0)), version),
            broker.ask(add(broker.name("unknown"), who, (topic, 0)), version),
            broker.ask(add("", who, (topic, 0)), version),
            broker.ask(add(id, who), version),
        ]
        said.append(broker.settled(id))
    said += broker.ended(id, who, False, 4)[:1]
    # With the next one only what is added then is in it.
    said.append(broker.ask(add(id, who, (topic, 2)), 3))
    said.append(broker.settled(id))
    return said


def brokers_add_partitions_of_many(broker: Teller) -> list[object]:
    topic, _ = broker.topic("many", partitions=3)
    one, two = broker.id("one"), broker.id("two")
    first, second = broker.begin(one), broker.begin(two)
    said: list[object] = []
    for version in (4, 5):

        def ask(*transactions: object, version: int = version) -> None:
            request = AddPartitionsToTxnRequest(transactions=transactions)  # type: ignore[arg-type]  # they are
            said.append(broker.ask(request, version))

        ask(added(one, first, (topic, 0)), added(two, second, (topic, 0), (topic, 1)))
        ask(
            added(one, first, (topic, 0), (topic, 1), verify_only=True),
            added(two, (second[0], second[1] + 1), (topic, 0), verify_only=True),
        )
        ask(added(one, first, (topic, 9)), added("", second, (topic, 0)))
        ask(added("", first, (topic, 0), verify_only=True))
        ask(added(broker.name("unknown"), first, (topic, 0), verify_only=True))
        ask(added(one, (first[0] + 1_000_000, 0), (topic, 0), verify_only=True))
        said.append(broker.settled(one))
    # What was added like this ends with a new epoch; an old client's end does not bring one.
    told, first = broker.ended(one, first, True, 5)
    said += [told, broker.settled(one)]
    told, second = broker.ended(two, second, True, 4)
    said += [told, broker.settled(two)]
    ask(added(one, first, (topic, 0), verify_only=True))
    return said


def records_in_every_version(broker: Teller) -> list[object]:
    topic = broker.topic("written", partitions=2)
    id = broker.id("writing")
    who = broker.begin(id)
    said: list[object] = []
    sequence = 0
    for version in range(3, 14):
        new = version >= 12
        if version == 12:
            who, sequence = broker.begin(id), 0
        if not new:
            said.append(broker.ask(add(id, who, (topic[0], 0)), 3))
        said.append(broker.ask(write(topic, id, who, sequence), version))
        said.append(broker.ask(write(topic, id, who, sequence), version))  # again
        said.append(broker.ask(write(topic, id, who, sequence + 1), version))
        said += broker.look(topic)
        said.append(broker.settled(id))
        told, then = broker.ended(id, who, version % 2 == 0, 5 if new else 4)
        sequence = 0 if then != who else sequence + 2
        who = then
        said.append(told)
        said += broker.look(topic)
    return said


def ends_in_every_version(broker: Teller) -> list[object]:
    topic, _ = broker.topic("ending")
    id = broker.id("ends")
    said: list[object] = []
    for version in (0, 1, 2, 3, 4):
        who = broker.begin(id)
        for commit in (True, False):
            said.append(broker.ask(end(id, who, commit), version))  # nothing has begun
            broker.ask(add(id, who, (topic, 0)), 3)
            said.append(broker.ask(end(id, (who[0], who[1] + 1), commit), version))
            said.append(broker.ask(end(id, (who[0] + 1_000_000, who[1]), commit), version))
            said += broker.ended(id, who, commit, version)[:1]
            said.append(broker.ask(end(id, who, commit), version))
            said.append(broker.ask(end(id, who, not commit), version))
            said.append(broker.settled(id))
        said.append(broker.ask(end(broker.name("unknown"), who, True), version))
        said.append(broker.ask(end("", who, True), version))
        old = who
        broker.begin(id)
        said.append(broker.ask(end(id, old, True), version))
    return said


def ends_with_new_epochs(broker: Teller) -> list[object]:
    topic = broker.topic("bumped")
    id = broker.id("bumps")
    who = broker.begin(id)
    said: list[object] = [
        broker.ask(end(id, who, True), 5),  # nothing has begun
        broker.ask(end(id, (who[0], who[1] + 1), False), 5),
    ]
    told, who = broker.ended(id, who, False, 5)  # which is no reason not to abort
    said += [told, broker.settled(id)]
    for commit in (True, False):
        before = who
        said.append(broker.ask(write(topic, id, who), 12))
        said.append(broker.ask(end(id, (who[0], who[1] + 1), commit), 5))
        said.append(broker.ask(end(id, (who[0], who[1] - 1), commit), 5))
        told, who = broker.ended(id, who, commit, 5)
        said += [told, broker.settled(id)]
        # Again: the same answer, and the other end is no more to be had.
        said.append(broker.ended(id, before, commit, 5)[0])
        said.append(broker.ask(end(id, before, not commit), 5))
        said.append(broker.ask(end(id, who, True), 5))
        told, who = broker.ended(id, who, False, 5)
        said += [told, broker.settled(id)]
        said.append(broker.ask(end(id, (before[0], before[1] - 3), commit), 5))
        said.append(broker.ask(write(topic, id, before, 1), 12))  # a zombie
    # A client of the new kind that goes on as an old one.
    said.append(broker.ask(add(id, who, (topic[0], 0)), 3))
    said += [broker.ended(id, who, True, 4)[0], broker.settled(id)]
    said.append(broker.ask(end(id, who, True), 4))
    said.append(broker.ask(initialise(id, who=who), 5))
    said += broker.look(topic)
    return said


def records_that_are_in_no_transaction(broker: Teller) -> list[object]:
    topic = broker.topic("outside", partitions=2)
    id, other = broker.id("outside"), broker.name("unknown")
    who = broker.begin(id)
    said: list[object] = []
    for version in (3, 8, 10, 11):
        said += [
            broker.ask(write(topic, id, who), version),
            broker.ask(write(topic, other, who), version),
            broker.ask(write(topic, None, who), version),
            broker.ask(write(topic, "", who), version),
            broker.ask(write(topic, id, (who[0], who[1] + 1)), version),
            broker.ask(write(topic, id, (who[0] + 1_000_000, 0)), version),
            broker.ask(write(topic, id, who, partition=7), version),
        ]
    said.append(broker.ask(add(id, who, (topic[0], 0)), 3))
    for version in (3, 11):
        both = [(0, records(who, 0)), (1, records(who, 0))]
        said.append(broker.ask(produce(topic, both, acks=-1, transactional_id=id), version))
    two = [(0, records(who, 1)), (1, records((who[0] + 1, 0), 0))]
    said.append(broker.ask(produce(topic, two, acks=-1, transactional_id=id), 11))
    # A batch that does not say that it is in the transaction.
    said.append(broker.ask(produce(topic, [(0, records(who, 1, is_transactional=False))]), 11))
    said += broker.ended(id, who, True, 4)[:1]
    said += broker.look(topic)
    return said


def records_that_add_their_partition(broker: Teller) -> list[object]:
    topic = broker.topic("implied", partitions=3)
    id, other = broker.id("implied"), broker.name("unknown")
    broker.begin(id)
    who = broker.begin(id)
    said: list[object] = []
    for version in (12, 13):
        said += [
            broker.ask(write(topic, other, who), version),
            broker.ask(write(topic, "", who), version),
            broker.ask(write(topic, id, (who[0], who[1] + 1)), version),
            broker.ask(write(topic, id, (who[0], who[1] - 1)), version),
            broker.ask(write(topic, id, (who[0] + 1_000_000, 0)), version),
            broker.ask(write(topic, id, who, partition=7), version),
            # A producer that the partition does not know begins at 0.
            broker.ask(write(topic, id, who, 5), version),
            broker.ask(write(topic, id, who, 0), version),
            broker.ask(write(topic, id, who, 1), version),
            broker.ask(write(topic, id, who, 7), version),
            broker.settled(id),
        ]
        both = [(0, records(who, 2)), (1, records(who, 0)), (2, records(who, 3))]
        said.append(broker.ask(produce(topic, both, acks=-1, transactional_id=id), version))
        said.append(broker.settled(id))
        told, who = broker.ended(id, who, version == 12, 5)
        said += [told, *broker.look(topic), *broker.look(topic, 2)]
    return said


def a_zombie_is_fenced(broker: Teller) -> list[object]:
    topic = broker.topic("fenced")
    id = broker.id("fenced")
    said: list[object] = []
    for version in (11, 12):
        old = broker.begin(id)
        if version == 11:
            broker.ask(add(id, old, (topic[0], 0)), 3)
        said.append(broker.ask(write(topic, id, old), version))
        said += broker.look(topic)
        # Another one begins, which first aborts what is going on.
        said.append(broker.ask(initialise(id), 5))
        said.append(broker.settled(id))
        new = broker.begin(id)
        said.append((new[0] == old[0], new[1] - old[1]))
        for each in (0, 1, 2, 3):
            said.append(broker.ask(add(id, old, (topic[0], 0)), each))
        for each in (0, 1, 2, 4, 5):
            said.append(broker.ask(end(id, old, True), each))
        for each in (3, 10, 11, 12, 13):
            said.append(broker.ask(write(topic, id, old, 1), each))
        said.append(broker.ask(initialise(id, who=old), 3))
        said.append(broker.ask(initialise(id, who=old), 5))
        said += broker.look(topic)
    return said


def markers_by_hand(broker: Teller) -> list[object]:
    topic = broker.topic("marked", partitions=2)
    id = broker.id("marked")
    said: list[object] = []

    def mark(
        who: tuple[int, int],
        commit: bool,
        coordinator: int = 0,
        version: int = 0,
        partitions: tuple[int, ...] = (0,),
    ) -> WritableTxnMarker:
        return WritableTxnMarker(
            producer_id=who[0],
            producer_epoch=who[1],
            transaction_result=commit,
            topics=(
                WritableTxnMarkerTopic(name=topic[0], partition_indexes=partitions),
                WritableTxnMarkerTopic(name="nowhere", partition_indexes=(0,)),
            ),
            coordinator_epoch=coordinator,
            transaction_version=version,
        )

    broker.begin(id)
    for version in (1, 2):
        who = broker.begin(id)
        other = who[0] + 1_000_000, 3
        broker.ask(add(id, who, (topic[0], 0)), 3)
        said.append(broker.ask(write(topic, id, who), 11))
        for markers in (
            [mark((who[0], who[1] - 1), False)],
            [mark(who, False, partitions=(0, 1, 5))],
            [mark(other, True, coordinator=10), mark(other, True, coordinator=9)],
            [],
        ):
            said.append(broker.ask(WriteTxnMarkersRequest(markers=tuple(markers)), version))
            said += broker.look(topic)
        broker.ask(end(id, who, False), 4)
        broker.begin(id)
    # Ended by transaction.version 2: with a higher epoch than the records, or again.
    who = (who[0] + 1000, 5)
    for version, epoch in ((2, 5), (2, 5), (0, 5), (2, 4), (2, 6)):
        marker = mark((who[0], epoch), True, version=version)
        said.append(broker.ask(WriteTxnMarkersRequest(markers=(marker,)), 2))
    return said


def transactions_are_listed(broker: Teller) -> list[object]:
    topic, _ = broker.topic("listed")
    one, two, three = broker.id("list-a"), broker.id("list-b"), broker.id("tail")
    first, second = broker.begin(one), broker.begin(two)
    broker.begin(three)
    broker.ask(add(one, first, (topic, 0)), 3)
    broker.ask(add(two, second, (topic, 0)), 3)
    broker.ended(two, second, True, 4)
    said: list[object] = []

    def ask(version: int, **filters: object) -> None:
        # Others are at this broker too.
        request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]  # fields of it
        answer = broker.ask_for(ListTransactionsResponse, request, version)
        states = [s for s in answer.transaction_states if s.transactional_id in (one, two, three)]
        said.append(broker.plain(msgspec.structs.replace(answer, transaction_states=tuple(states))))

    for version in (0, 1, 2):
        ask(version)
        ask(version, state_filters=("Ongoing",))
        ask(version, state_filters=("Empty", "CompleteCommit", "Nonsense", "Dead"))
        ask(version, state_filters=("Nonsense",))
        ask(version, producer_id_filters=(first[0],))
        ask(version, producer_id_filters=(first[0], second[0]), state_filters=("Ongoing",))
    for version in (1, 2):
        ask(version, duration_filter=0)
        ask(version, duration_filter=3_600_000)
        ask(version, duration_filter=-1)
    for pattern in ("", "list-.*", "list", ".*ist-a.*", f"{one}|{three}", "(", "[a", "(?=x)"):
        ask(2, transactional_id_pattern=pattern)
    ask(2, transactional_id_pattern=".*", state_filters=("Empty",))
    described = DescribeTransactionsRequest(
        transactional_ids=(one, two, broker.name("unknown"), "", one)
    )
    said.append(broker.ask(described, 0))
    return said


STORIES = (
    producers_begin_in_every_version,
    odd_beginnings,
    partitions_are_added_in_every_version,
    brokers_add_partitions_of_many,
    records_in_every_version,
    ends_in_every_version,
    ends_with_new_epochs,
    records_that_are_in_no_transaction,
    records_that_add_their_partition,
    a_zombie_is_fenced,
    markers_by_hand,
    transactions_are_listed,
)

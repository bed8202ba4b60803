"""What may happen to a loader, told by hand.

Ours does what Kafka's does. `different_stories` has those in which it does not.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftline.records.framing import batches
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UserScramCredentialRecord,
)
from kraftline.schema.types import Message, Uuid
from kraftline.storage.names import SnapshotId
from tests.metadata.loader_telling import Story, snapshot_bytes
from tests.metadata.loading import ABORT, BEGIN, END, VERSION, topic

A, B, C, D = map(topic, "abcd")
NOBODY = Uuid(b"0123456789abcdef")
UNKNOWN_TOPIC = RemoveTopicRecord(topic_id=NOBODY)
CONTROL = KRaftVersionRecord(kraft_version=1)
PARTITION = PartitionRecord(
    partition_id=0, topic_id=A.topic_id, replicas=(1,), isr=(1,), leader=1, directories=(NOBODY,)
)
NO_PARTITION = PartitionChangeRecord(partition_id=7, topic_id=A.topic_id, leader=1)


def level(name: str, number: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=number)


def started(**limits: int) -> Story:
    """A story with a publisher that has caught up; the next offset is 1."""
    story = Story(**limits)
    story.commit([VERSION])
    story.install("p")
    return story


def batches_of_a_commit() -> Story:
    story = started()
    story.leader(3, 7)
    story.commit([A, B], [C])
    story.epoch = 2
    story.commit([NoOpRecord()])
    story.commit(
        [RemoveTopicRecord(topic_id=A.topic_id)], [D], [RemoveTopicRecord(topic_id=D.topic_id)]
    )
    return story


def epochs_in_a_commit() -> Story:
    story = started()
    first = story.batch(A)
    story.epoch = 4
    story.commit(first, [B])
    return story


def empty_commits() -> Story:
    story = Story()
    story.commit()
    story.install("p")
    story.commit()
    story.commit([VERSION])
    story.commit()
    story.commit([A])
    story.commit()
    return story


def control_batches() -> Story:
    story = Story()
    story.install("p")
    story.commit(story.control(CONTROL), [VERSION])
    story.commit(story.control(CONTROL))
    story.commit([A], story.control(CONTROL), [BEGIN, B], story.control(CONTROL))
    story.commit(story.control(CONTROL, CONTROL))
    story.commit([END], story.control(CONTROL))
    return story


def kraft_version_goes_on() -> Story:
    story = Story()
    story.install("p")
    story.commit(story.control(KRaftVersionRecord(kraft_version=0)), [VERSION])
    story.commit([level("group.version", 1)])
    story.commit(story.control(CONTROL), [level("group.version", 0), level("share.version", 1)])
    story.commit([level("transaction.version", 2), level("kraft.version", 1)])
    return story


def every_part() -> Story:
    story = started()
    for record in (
        RegisterBrokerRecord(broker_id=1, broker_epoch=1, log_dirs=(NOBODY,)),
        A,
        PARTITION,
        ConfigRecord(resource_type=4, resource_name="1", name="log.retention.ms", value="5"),
        ClientQuotaRecord(entity=(), key="request_percentage", value=1.0),
        ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),
        UserScramCredentialRecord(name="u", mechanism=1, iterations=4096),
        level("group.version", 1),
        level("metadata.version", VERSION.feature_level),
        RemoveTopicRecord(topic_id=A.topic_id),
        NoOpRecord(),
    ):
        story.commit([record])
    story.install("late")
    return story


# Transactions.


def transaction_in_a_batch() -> Story:
    story = started()
    story.commit([BEGIN, A, END])
    story.commit([A, BEGIN, B, END, C])
    story.commit([BEGIN, END])
    story.commit([BEGIN, END, BEGIN, D, END])
    return story


def transaction_over_batches() -> Story:
    story = started()
    story.commit([BEGIN], [A], [END])
    story.commit([B], [C, BEGIN, D], [NoOpRecord(), END, B])
    return story


def transaction_over_commits() -> Story:
    story = started()
    story.commit([BEGIN, A])
    story.leader(1, 2)
    story.install("late")
    story.commit([B])
    story.commit()
    story.commit([END, C])
    story.commit([A, BEGIN])
    story.commit([D])
    story.commit([END])
    return story


def transaction_first_of_all() -> Story:
    story = Story()
    story.install("p")
    story.commit([BEGIN, VERSION, A])
    story.commit([END])
    story.commit([B])
    return story


def aborted_at_the_end_of_a_commit() -> Story:
    story = started()
    story.commit([A, BEGIN, B, ABORT])
    story.commit([BEGIN, C])
    story.commit([D])
    story.commit([ABORT])
    story.commit([BEGIN, ABORT])
    story.commit([C], story.control(CONTROL))
    return story


def misplaced_markers() -> Story:
    story = started()
    story.commit([END, A])
    story.commit([ABORT])
    story.commit([BEGIN, B, BEGIN, C, END])
    story.commit([END])
    story.commit([BEGIN, C], [BEGIN, D])
    story.commit([BEGIN])
    story.commit([END, ABORT])
    return story


def faults_inside_a_transaction() -> Story:
    """Each is told when its record is read, whatever comes of the transaction."""
    story = started()
    story.commit([BEGIN, UNKNOWN_TOPIC, BEGIN, A])
    story.commit([NO_PARTITION, END])
    story.commit([BEGIN, UNKNOWN_TOPIC])
    story.commit([UNKNOWN_TOPIC, ABORT])
    return story


def snapshot_inside_a_transaction() -> Story:
    story = started()
    story.commit([BEGIN, A])
    story.snapshot(20, VERSION, B)
    story.commit([C])
    story.commit([END])
    story.commit([D, BEGIN, A], [END])
    return story


# Catching up.


def high_watermark_unknown() -> Story:
    story = Story()
    story.high(None)
    story.install("p")
    story.commit([VERSION, A])
    story.tick(100)
    story.leader(1, 1)
    story.commit([B])
    story.high(3)
    story.commit([C])
    story.install("late")
    story.commit([D])
    return story


def high_watermark_below() -> Story:
    story = Story()
    story.high(5)
    story.install("p")
    story.commit([VERSION], [A])
    story.leader(1, 1)
    story.commit([B])
    story.tick(99)
    story.tick(1)
    story.commit([C], [D])
    story.high(100)
    story.commit([NoOpRecord()])
    story.install("late")
    return story


def high_watermark_in_the_middle_of_a_commit() -> Story:
    story = Story()
    story.high(1)
    story.install("p")
    story.commit([VERSION, BEGIN, A], [END])
    return story


def high_watermark_inside_a_transaction() -> Story:
    story = Story()
    story.high(3)
    story.install("p")
    story.commit([VERSION, BEGIN, A])
    story.install("late")
    story.commit([END])
    return story


def snapshot_while_catching_up() -> Story:
    story = Story()
    story.high(25)
    story.install("p")
    story.snapshot(20, VERSION, A)
    story.commit([B, C, D])
    story.high(23)
    story.commit([NoOpRecord()])
    return story


def publishers_before_and_after() -> Story:
    story = Story()
    story.leader(2, 1)
    story.install("early", "also")
    story.commit([VERSION])
    story.leader(3, 2)
    story.install("late")
    story.commit([A])
    story.leader(None, 3)
    story.install("later", "last")
    story.commit([B])
    return story


def all_in_the_queue() -> Story:
    """A publisher that is installed has its first image before what else is in the queue."""
    story = started()
    story.install("late")
    story.commit([A])
    story.leader(1, 2)
    story.together(3)
    story.commit([B])
    story.install("later")
    story.remove("late")
    story.commit([C])
    story.install("last")
    story.together(5)
    return story


def catching_up_with_all_in_the_queue() -> Story:
    story = Story()
    story.install("p")
    story.commit([VERSION])
    story.commit([A])
    story.install("q")
    story.leader(1, 2)
    story.together(5)
    return story


# Publishers.


def removed_publishers() -> Story:
    story = started()
    story.install("q", "r")
    story.remove("q")
    story.commit([A])
    story.remove("q")
    story.remove("r#2")
    story.install("q")
    story.leader(1, 1)
    story.commit([B])
    story.install()
    return story


def removed_while_it_waits() -> Story:
    story = Story()
    story.install("p", "q")
    story.remove("p")
    story.commit([VERSION])
    story.commit([A])
    return story


def closed_while_some_wait() -> Story:
    story = Story()
    story.high(10)
    story.install("p", "q")
    story.fails("p", "close")
    story.commit([VERSION])
    return story


def closed_before_one_is_initialized() -> Story:
    story = started()
    story.install("late")
    story.commit([A])
    story.close()
    story.together(3)
    return story


def failing_publishers() -> Story:
    story = started()
    story.install("q", "r")
    story.fails("p", "update")
    story.fails("q", "controller")
    story.fails("r", "close")
    story.commit([A, BEGIN, B, END])
    story.leader(1, 1)
    story.fails("p")
    story.snapshot(20, VERSION, C)
    story.remove("r")
    story.leader(2, 2)
    return story


# Faults.


def faulty_records() -> Story:
    story = started()
    story.commit([A, UNKNOWN_TOPIC, PARTITION, NO_PARTITION], [UNKNOWN_TOPIC, B])
    story.commit([level("metadata.version", 6), level("metadata.version", 99)])
    story.commit([C])
    return story


def broken_commit() -> Story:
    story = started()
    whole = [story.batch(A), story.batch(B), story.batch(C)]
    whole[1] = whole[1][:-1] + b"\x7f"
    story.commit(*whole)
    story.commit([D])
    return story


# Snapshots.


def snapshots() -> Story:
    story = Story()
    story.install("p")
    story.snapshot(20, VERSION, A, level("group.version", 1), kraft_version=1)
    story.commit([B], [ConfigRecord(resource_type=2, resource_name="a", name="k", value="v")])
    story.commit([ProducerIdsRecord(next_producer_id=5)])
    story.snapshot(30, VERSION, C, epoch=3)
    story.snapshot(31, VERSION, C, epoch=3)
    story.commit([D])
    return story


def snapshot_of_formatting() -> Story:
    story = Story()
    story.install("p")
    story.snapshot(0, VERSION, A, epoch=0)
    story.commit([VERSION])
    story.snapshot(0, VERSION, A, epoch=0)
    return story


def faulty_snapshot() -> Story:
    story = started()
    story.commit([D])
    story.load(20, 2, in_batches(VERSION, UNKNOWN_TOPIC, A, NO_PARTITION, BEGIN, B))
    story.commit([C])
    return story


def broken_snapshot() -> Story:
    """Its records cannot be read: the image stays, and so does an open transaction."""
    story = started()
    story.commit([D, BEGIN, A])
    header, first, second, *rest = parts_of(in_batches(VERSION, A, B, C))
    story.load(20, 2, b"".join([header, first, second[:-1] + b"\x7f", *rest]))
    story.commit([C, END])
    return story


def in_batches(*entries: Message) -> bytes:
    """A snapshot in which few records are in one batch."""
    return snapshot_bytes(SnapshotId(20, 2), entries, max_batch_bytes=130)


def parts_of(raw: bytes) -> list[bytes]:
    return [bytes(batch.data) for batch in batches(raw)]


def names_that_are_taken() -> Story:
    story = started()
    story.install("p")
    story.install("q", "p#2")
    story.install("q")
    story.commit([A])
    return story


def failing_at_first() -> Story:
    story = Story()
    story.commit([VERSION])
    story.fails("p", "update")
    story.fails("q", "controller")
    story.install("p", "q", "r")
    story.commit([A])
    story.remove("p")
    story.fails("p")
    story.install("p")
    return story


def named(*stories: Callable[[], Story]) -> dict[str, Story]:
    return {each.__name__.replace("_", " "): each() for each in stories}


LOADER_STORIES = named(
    batches_of_a_commit,
    epochs_in_a_commit,
    empty_commits,
    control_batches,
    kraft_version_goes_on,
    every_part,
    transaction_in_a_batch,
    transaction_over_batches,
    transaction_over_commits,
    transaction_first_of_all,
    aborted_at_the_end_of_a_commit,
    misplaced_markers,
    faults_inside_a_transaction,
    snapshot_inside_a_transaction,
    high_watermark_unknown,
    high_watermark_below,
    high_watermark_in_the_middle_of_a_commit,
    high_watermark_inside_a_transaction,
    snapshot_while_catching_up,
    publishers_before_and_after,
    all_in_the_queue,
    catching_up_with_all_in_the_queue,
    removed_publishers,
    removed_while_it_waits,
    closed_while_some_wait,
    closed_before_one_is_initialized,
    failing_publishers,
    failing_at_first,
    names_that_are_taken,
    faulty_records,
    broken_commit,
    snapshots,
    snapshot_of_formatting,
    faulty_snapshot,
    broken_snapshot,
)

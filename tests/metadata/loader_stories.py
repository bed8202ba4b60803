"""What may happen to a loader, told by hand: each story is one behaviour of Kafka's.

`STORIES` are those in which ours does the same to the letter, `DIFFERENT` those in which it does
not, on purpose: the test says what it does instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
from tests.metadata.loader_telling import GENERATOR, Story
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
    story.commit([RemoveTopicRecord(topic_id=A.topic_id)], [D], [RemoveTopicRecord(topic_id=D.topic_id)])
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
    story.commit([PartitionRecord(topic_id=NOBODY, replicas=(1,))])
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
    story.snapshot(20, VERSION, UNKNOWN_TOPIC, A, NO_PARTITION, BEGIN, B)
    story.commit([C])
    return story


# The snapshot generator. A batch of one topic has 61 + 32 bytes or so.


def generator(**limits: int) -> Story:
    story = Story(**limits)
    story.commit([VERSION])
    story.install(GENERATOR, "p")
    return story


def commits(story: Story, records: Iterable[Message]) -> None:
    for record in records:
        story.commit([record])


def snapshot_by_bytes() -> Story:
    story = generator(max_bytes=250)
    commits(story, (A, B, C, D, A, B, C, D))
    story.commit(*([topic(f"t{n}")] for n in range(9)))
    story.commit([C])
    return story


def snapshot_by_time() -> Story:
    story = generator(max_bytes=10**6, max_interval_ms=60_000)
    for ms in (30_000, 29_999, 1, 59_999, 1, 120_000, 1):
        story.tick(ms)
        story.commit([NoOpRecord()])
    return story


def no_snapshot_by_time() -> Story:
    story = generator(max_bytes=10**6)
    story.tick(10**9)
    commits(story, (A, B))
    return story


def no_snapshot_without_alignment() -> Story:
    story = generator(max_bytes=100)
    story.commit([NoOpRecord()])
    story.commit([A, BEGIN, B])
    story.commit([C])
    story.commit([END])
    story.commit([A], [B, BEGIN, D, END])
    story.commit([A], [B], [BEGIN, D, END])
    return story


def snapshots_disabled() -> Story:
    story = generator(max_bytes=100)
    commits(story, (A, B, C))
    story.disable("metadata loading fault")
    commits(story, (A, B, C))
    return story


def generator_shuts_down() -> Story:
    story = generator(max_bytes=100)
    story.commit([A])
    story.shutdown()
    commits(story, (A, B, C))
    return story


def one_snapshot_at_a_time() -> Story:
    story = generator(max_bytes=100, max_interval_ms=1000)
    story.emitter("held")
    commits(story, (A, B, C, D, A, B))
    story.tick(1000)
    story.commit([C])
    story.emitter("ready")
    story.commit()
    commits(story, (A, B))
    return story


def loaded_snapshot_starts_again() -> Story:
    story = generator(max_bytes=200, max_interval_ms=1000)
    story.commit([A])
    story.tick(900)
    story.snapshot(20, VERSION, B)
    story.commit([C])
    story.tick(900)
    story.commit([NoOpRecord()])
    story.commit([D])
    return story


def failed_snapshot() -> Story:
    story = generator(max_bytes=150)
    story.emitter("fails")
    commits(story, (A, B, C, D))
    story.emitter("ready")
    commits(story, (A, B, C, D))
    return story


def generator_removed() -> Story:
    story = generator(max_bytes=100)
    commits(story, (A, B))
    story.remove(GENERATOR)
    commits(story, (C, D))
    return story


# Where ours does otherwise.


def aborted_before_more() -> Story:
    story = started()
    story.commit([BEGIN, A, ABORT, B])
    story.commit([BEGIN, C, ABORT], [BEGIN, D, END])
    return story


def transaction_begins_a_batch() -> Story:
    story = started()
    first = story.batch(A)
    story.epoch = 5
    story.commit(first, [BEGIN, B, END])
    return story


def no_metadata_version() -> Story:
    story = Story()
    story.commit(story.control(CONTROL))
    story.install("p")
    story.commit([A])
    story.commit([VERSION])
    story.commit([B])
    return story


def begin_behind_begin() -> Story:
    story = started()
    story.commit([A])
    story.commit([BEGIN, BEGIN, B])
    story.commit([END])
    return story


def caught_up_without_a_commit() -> Story:
    story = Story()
    story.high(None)
    story.snapshot(20, VERSION, A)
    story.install("p")
    story.high(20)
    story.tick(100)
    story.commit([B])
    return story


def names_that_are_taken() -> Story:
    story = started()
    story.install("p")
    story.install("q", "p#2")
    story.install("q")
    story.commit([A])
    return story


def one_name_twice_in_a_list() -> Story:
    story = started()
    story.install("q", "q#2")
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


def more_than_the_version_can_write() -> Story:
    story = Story()
    story.commit(
        [level("metadata.version", 7), UserScramCredentialRecord(name="u", mechanism=1)]
    )
    story.install("p")
    story.commit([A])
    return story


def unreadable_record() -> Story:
    story = started()
    story.commit([A], [B, b"\x01\x02\x00\xff", C])
    story.commit([D])
    return story


def truncated_snapshot() -> Story:
    story = started()
    whole = Story()
    whole.snapshot(20, VERSION, A, B, C)
    return story


def named(*stories: Callable[[], Story]) -> dict[str, Story]:
    return {each.__name__.replace("_", " "): each() for each in stories}


STORIES = named(
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
    failing_publishers,
    faulty_records,
    broken_commit,
    snapshots,
    snapshot_of_formatting,
    faulty_snapshot,
    snapshot_by_bytes,
    snapshot_by_time,
    no_snapshot_by_time,
    no_snapshot_without_alignment,
    snapshots_disabled,
    generator_shuts_down,
    one_snapshot_at_a_time,
    loaded_snapshot_starts_again,
    failed_snapshot,
    generator_removed,
)
DIFFERENT = named(
    aborted_before_more,
    transaction_begins_a_batch,
    no_metadata_version,
    begin_behind_begin,
    caught_up_without_a_commit,
    names_that_are_taken,
    one_name_twice_in_a_list,
    failing_at_first,
    more_than_the_version_can_write,
    unreadable_record,
)

"""Stories in which our loader does not do what Kafka's does, on purpose: `test_loader_like_kafka`
says what it does instead."""

from __future__ import annotations

from kraftline.schema.metadata import (
    NoOpRecord,
    PartitionRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from tests.metadata.loader_stories import (
    CONTROL,
    NOBODY,
    A,
    B,
    C,
    D,
    in_batches,
    level,
    named,
    parts_of,
    started,
)
from tests.metadata.loader_telling import Story
from tests.metadata.loading import ABORT, BEGIN, END, VERSION


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


def one_name_twice_in_a_list() -> Story:
    story = started()
    story.install("q", "q#2")
    story.commit([A])
    return story


def more_than_the_version_can_write() -> Story:
    story = Story()
    story.commit([level("metadata.version", 7), UserScramCredentialRecord(name="u", mechanism=1)])
    story.install("p")
    story.commit([A])
    return story


def unreadable_record() -> Story:
    story = started()
    story.commit([A], [B, b"\x01\x02\x00\xff", C])
    story.commit([D])
    return story


def partition_of_no_topic() -> Story:
    story = started()
    story.commit([A, PartitionRecord(topic_id=NOBODY, replicas=(1,)), B])
    story.commit([C])
    return story


def cut_snapshot() -> Story:
    story = started()
    header, first, second, *_ = parts_of(in_batches(VERSION, A, B, C))
    story.commit([D])
    story.load(20, 2, header + first + second[:40])
    story.commit([NoOpRecord()])
    return story


def last_scram_user_replaced() -> Story:
    story = started()
    story.commit([UserScramCredentialRecord(name="x", mechanism=1, iterations=4096)])
    story.commit(
        [
            RemoveUserScramCredentialRecord(name="x", mechanism=1),
            UserScramCredentialRecord(name="y", mechanism=1, iterations=4096),
        ]
    )
    return story


DIFFERENT = named(
    aborted_before_more,
    transaction_begins_a_batch,
    no_metadata_version,
    begin_behind_begin,
    caught_up_without_a_commit,
    one_name_twice_in_a_list,
    more_than_the_version_can_write,
    unreadable_record,
    partition_of_no_topic,
    last_scram_user_replaced,
    cut_snapshot,
)

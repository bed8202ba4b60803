"""What may make a snapshot generator write, or not, told by hand. A batch of one topic has 90
bytes."""

from __future__ import annotations

from collections.abc import Iterable

from kraftline.schema.metadata import NoOpRecord
from kraftline.schema.types import Message
from tests.metadata.loader_stories import A, B, C, D, named
from tests.metadata.loader_telling import GENERATOR, Story
from tests.metadata.loading import BEGIN, END, VERSION, topic


def generator(**limits: int) -> Story:
    story = Story(**limits)
    story.commit([VERSION])
    story.install(GENERATOR, "p")
    return story


def commits(story: Story, records: Iterable[Message]) -> None:
    for record in records:
        story.commit([record])


def snapshot_by_bytes() -> Story:
    story = generator(max_bytes=270)
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
    story = generator(max_bytes=130)
    story.commit([NoOpRecord()])
    story.commit([A, BEGIN, B])
    story.commit([C])
    story.commit([END])
    story.commit([A], [C], [B, BEGIN, D, END])
    story.commit([A], [B], [BEGIN, D, END])
    return story


def bytes_count_without_alignment() -> Story:
    story = generator(max_bytes=250)
    story.commit([A], [C], [B, BEGIN, NoOpRecord(), END])
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


GENERATOR_STORIES = named(
    snapshot_by_bytes,
    snapshot_by_time,
    no_snapshot_by_time,
    no_snapshot_without_alignment,
    bytes_count_without_alignment,
    snapshots_disabled,
    generator_shuts_down,
    one_snapshot_at_a_time,
    loaded_snapshot_starts_again,
    failed_snapshot,
    generator_removed,
)

"""What every side of a partition's log works on: its files, its offsets, and the two locks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from kraftline.schema.uuids import Uuid
from kraftline.storage import partition_metadata
from kraftline.storage.log.batch_fields import CONTROL, TRANSACTIONAL, BatchFields
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.loading import Loaded
from kraftline.storage.log.log_files import LogFiles
from kraftline.storage.log.open_file import OpenFile
from kraftline.storage.log.problems import InconsistentTopicId, LogClosed, OffsetOutOfRange
from kraftline.storage.log.producers import Marker
from kraftline.storage.log.segment import Segment
from kraftline.storage.partition_metadata import PartitionMetadata, format_partition_metadata


class LogBase:
    """`start_offset` and `end_offset` are those of the log, `high_watermark` is what its owner
    says, `recovery_point` is up to where all is durable."""

    __slots__ = (
        "_clock",
        "_epochs_changed",
        "_files",
        "_is_closed",
        "_lock",
        "_upkeep",
        "disk",
        "end_offset",
        "epochs",
        "high_watermark",
        "last_flush",
        "name",
        "opening",
        "partition",
        "producers",
        "recovery_point",
        "start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self, files: LogFiles, topic: str, partition: int, loaded: Loaded, clock: Callable[[], int]
    ) -> None:
        """Made by `open`."""
        self.topic = topic
        self.partition = partition
        self.name = f"{topic}-{partition}"
        self.topic_id = loaded.topic_id
        self.opening = loaded.opening
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark = loaded.start_offset
        self.last_flush = clock()
        self.disk = files.disk
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        self._upkeep = threading.Lock()
        self._epochs_changed = bool(loaded.opening.recovered_segments)
        self._is_closed = False

    @property
    def directory(self) -> str:
        return self._files.directory

    @property
    def config(self) -> LogConfig:
        return self._files.config

    def configure(self, config: LogConfig) -> None:
        """The topic's config has changed; it counts from the next append on."""
        self._files.config = config

    def claim(self, topic_id: Uuid) -> None:
        """The log is this topic's: noted where it was nobody's, else InconsistentTopicId."""
        if self.topic_id is None:
            path = os.path.join(self.directory, partition_metadata.NAME)
            with self.disk.doing(f"noting the topic of {self.name}"):
                file = OpenFile(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                file.write(format_partition_metadata(PartitionMetadata(topic_id)), 0)
            self.topic_id = topic_id
        elif self.topic_id != topic_id:
            raise InconsistentTopicId(
                f"{self.directory} has the topic id {self.topic_id}, not {topic_id}"
            )

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return self._files.segments.size

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._files.segments.all

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def unflushed_messages(self) -> int:
        return self.end_offset - self.recovery_point

    @property
    def last_stable_offset(self) -> int:
        """Up to where no transaction is open, and everything is below the high watermark."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.start_offset)

    # Inside; the lock is held

    def _check_open(self) -> None:
        if self._is_closed:
            raise LogClosed(f"{self.name} is closed")
        if self.disk.failure is not None:
            self.disk.check()

    def _note_producer(self, batch: BatchFields, marker: Marker | None) -> None:
        if not batch.attributes & CONTROL:
            self.producers.add_batch(
                batch.producer_id,
                batch.producer_epoch,
                batch.last_sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp,
                bool(batch.attributes & TRANSACTIONAL),
            )
        elif marker is not None:
            aborted = self.producers.add_marker(
                batch.producer_id,
                batch.producer_epoch,
                marker,
                batch.base_offset,
                batch.max_timestamp,
            )
            if aborted is not None:
                self._files.note_aborted(aborted)

    def _advance_start(self, offset: int) -> bool:
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"{self.name} cannot start at {offset}: its high watermark is {self.high_watermark}"
            )
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.cut_start(offset)
        self._epochs_changed = True
        self.producers.replicated(offset)
        self._files.producers.start_moved(self.producers, offset)
        return True

    def _let_go(self) -> None:
        self._is_closed = True
        self._files.let_go()

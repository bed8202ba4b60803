"""Opening a partition's directory, after a clean stop or any other: as Kafka does, and nothing
cut off in silence.

After a clean stop the files are taken as they are. After another, every batch from the segment of
the recovery point on is checked: the log ends before the first bad one, indexes and transaction
indexes of these segments are built again, and so is what is known of producers and epochs. A
segment without an offset index is treated that way in any case.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

import msgspec

from kraftline.errors import BadData, NotKafka
from kraftline.records.record import advance_sequence
from kraftline.schema.uuids import Uuid
from kraftline.storage import offset_index, time_index
from kraftline.storage.checkpoints import LEADER_EPOCHS
from kraftline.storage.cuts import Cut, whole_batches_after
from kraftline.storage.index_builder import IndexBuilder
from kraftline.storage.leader_epochs import LeaderEpochs
from kraftline.storage.log.batch_fields import CONTROL, TRANSACTIONAL
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.markers import read_marker
from kraftline.storage.log.problems import is_full
from kraftline.storage.log.producer_files import ProducerFiles
from kraftline.storage.log.producers import ProducerStates
from kraftline.storage.log.segment import SEGMENT_KINDS, Segment
from kraftline.storage.log.swaps import finish_swaps
from kraftline.storage.names import MAX_INT, FileKind
from kraftline.storage.partition_dir import PartitionDirectory, read_partition_directory
from kraftline.storage.sound_batches import SoundBatch, SoundBatches


class Stopped(msgspec.Struct, frozen=True):
    """How a log was left, by the checkpoints of its log directory."""

    clean: bool = True
    recovery_point: int = 0
    start_offset: int = 0


class Opening(msgspec.Struct, frozen=True):
    """What was found and done when a log was opened."""

    segments: int
    recovered_segments: int
    cuts: tuple[Cut, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What a person should know; nothing where all was well."""
        return [*map(str, self.cuts), *self.notes]


class Loaded(msgspec.Struct, frozen=True):
    """A log's state in memory; the last of `segments` is the one to append to.

    `unwritten` are segments whose indexes were built again and found no room on the disk.
    `as_left`: the last stop was clean, and no file has come or gone since.
    """

    opening: Opening
    segments: list[Segment]
    start_offset: int
    end_offset: int
    recovery_point: int
    epochs: LeaderEpochs
    producers: ProducerStates
    producer_files: ProducerFiles
    topic_id: Uuid | None
    unwritten: list[tuple[Segment, IndexBuilder]]
    as_left: bool


def load(
    directory: str,
    config: LogConfig,
    stopped: Stopped,
    producers: ProducerStates,
    now: int,
    *,
    is_new: bool = False,
) -> Loaded:
    """Bring a partition's directory, which is there, in order. One that `is_new` is not looked
    into: nothing is in it."""
    there = (
        PartitionDirectory(path=directory, name=None)
        if is_new
        else read_partition_directory(directory)
    )
    return _Loading(directory, config, stopped, producers, now).run(there)


class _Loading:
    def __init__(
        self,
        directory: str,
        config: LogConfig,
        stopped: Stopped,
        producers: ProducerStates,
        now: int,
    ) -> None:
        self.directory = directory
        self.config = config
        self.stopped = stopped
        self.producers = producers
        self.now = now
        self.notes: list[str] = []
        self.cuts: list[Cut] = []
        self.recovered = 0
        self.unwritten: list[tuple[Segment, IndexBuilder]] = []
        self.epochs = LeaderEpochs()
        self.files = ProducerFiles(directory)

    def run(self, there: PartitionDirectory) -> Loaded:
        as_left = self.stopped.clean and not there.working_files and bool(there.segments)
        if there.working_files:
            finish_swaps(there)
            there = read_partition_directory(self.directory)
        self._remove_orphans(there)
        self._read_epochs(there)
        self.files = ProducerFiles(
            self.directory, (file.end_offset for file in there.producer_snapshots)
        )
        segments, is_known = self._segments(there)
        end_offset = segments[-1].next_offset() if segments else 0
        start_offset = self.stopped.start_offset
        if segments and end_offset < start_offset:
            self._drop(segments, "the log's start offset is above its end")
            segments, is_known = [], False
            self.epochs = LeaderEpochs()
        if not segments:
            end_offset = start_offset
            segments = [self._first_segment(start_offset)]
        self.epochs.cut_end(end_offset)
        self.epochs.cut_start(start_offset)
        start_offset = max(start_offset, segments[0].base_offset)
        self._rebuild_producers(segments, start_offset, end_offset, is_known)
        point = end_offset if self.stopped.clean else self.stopped.recovery_point
        return Loaded(
            Opening(len(segments), self.recovered, tuple(self.cuts), tuple(self.notes)),
            segments,
            start_offset,
            end_offset,
            min(point, end_offset),
            self.epochs,
            self.producers,
            self.files,
            there.topic_id,
            self.unwritten,
            as_left and not self.recovered and not self.notes,
        )

    # Files

    def _remove_orphans(self, there: PartitionDirectory) -> None:
        for oddity in there.oddities:
            if oddity.reason == "an index without its segment":
                _remove(oddity.path)
                self.notes.append(f"{oddity.path}: removed, {oddity.reason}")

    def _read_epochs(self, there: PartitionDirectory) -> None:
        self.epochs = LeaderEpochs(there.leader_epochs)
        for oddity in there.oddities:
            if os.path.basename(oddity.path) == LEADER_EPOCHS:
                self.notes.append(f"{oddity.path}: {oddity.reason}; made anew from the batches")

    def _first_segment(self, base_offset: int) -> Segment:
        segment = Segment(
            self.directory,
            base_offset,
            created=self.now,
            indexes=IndexBuilder(base_offset, self.config.index_interval_bytes),
        )
        segment.create(self.config)
        return segment

    # Segments

    def _segments(self, there: PartitionDirectory) -> tuple[list[Segment], bool]:
        """The segments, and whether the producers are known up to the end of the last."""
        segments = [
            Segment(self.directory, each.base_offset, size=each.size, created=self.now)
            for each in there.segments
        ]
        indexed = {
            each.base_offset
            for each in there.segments
            if any(c.kind is FileKind.OFFSET_INDEX for c in each.companions)
        }
        first_unflushed = len(segments)
        if not self.stopped.clean:
            # Below, not at: a segment may have been flushed to its end and then closed, and what
            # closing adds to its indexes is flushed only later.
            bases = [segment.base_offset for segment in segments]
            below = [n for n, base in enumerate(bases) if base < self.stopped.recovery_point]
            first_unflushed = below[-1] if below else 0
        is_known = False
        for n, segment in enumerate(segments):
            is_last = n == len(segments) - 1
            is_trusted = n < first_unflushed and segment.base_offset in indexed
            if is_trusted and (not is_last or self._resume(segment)):
                is_known = False
                continue
            if not is_known:
                self._producers_up_to(segments[:n], segment.base_offset)
            builder, is_whole = self._recover(segment)
            is_known = True
            if not is_whole:
                self._drop(segments[n + 1 :], "it follows what was cut off")
                del segments[n + 1 :]
                is_last = True
            if is_last:
                builder.reopen(segment.size)
                segment.indexes = builder
                break
            self._close(segment, builder)
        return segments, is_known

    def _resume(self, segment: Segment) -> bool:
        """Go on appending to a segment whose index files can be trusted."""
        try:
            offsets = offset_index.read_offset_index(segment.path(FileKind.OFFSET_INDEX))
            offset_index.check_within(offsets, segment.size)
            times = time_index.read_time_index(segment.path(FileKind.TIME_INDEX))
        except BadData as error:
            self.notes.append(f"{error}; built again")
            return False
        except NotKafka:
            return False
        builder = IndexBuilder(segment.base_offset, self.config.index_interval_bytes)
        builder.resume(offsets, times, segment.size)
        segment.resume(builder)
        return True

    def _recover(self, segment: Segment) -> tuple[IndexBuilder, bool]:
        """Check every batch; cut the file before the first bad one. False where that was so."""
        self.recovered += 1
        _remove(segment.path(FileKind.TXN_INDEX))
        builder = IndexBuilder(segment.base_offset, self.config.index_interval_bytes)
        walk = SoundBatches(segment.path())
        good, next_offset, trouble = 0, segment.base_offset, None
        for batch in walk:
            trouble = _refusal(batch, segment.base_offset, next_offset)
            if trouble is None:
                trouble = self._feed(batch, segment)
            if trouble is not None:
                break
            builder.add(good, batch.last_offset, batch.max_timestamp)
            epoch = batch.leader_epoch
            if epoch >= 0 and (self.epochs.latest is None or epoch > self.epochs.latest):
                self.epochs.assign(epoch, batch.base_offset)
            good += batch.size
            next_offset = batch.last_offset + 1
        segment.size = good
        self.producers.end_offset = next_offset
        self.files.take(self.producers)
        trouble = trouble or walk.trouble
        if trouble is None:
            return builder, True
        batches, last_offset = whole_batches_after(segment.path(), good + 1)
        self.cuts.append(
            Cut(
                file=segment.path(),
                position=good,
                length=walk.file_size - good,
                offset=next_offset,
                reason=trouble,
                batches=batches,
                last_offset=last_offset,
            )
        )
        os.truncate(segment.path(), good)
        return builder, False

    def _close(self, segment: Segment, builder: IndexBuilder) -> None:
        builder.close()
        try:
            segment.write_indexes(builder)
        except OSError as error:
            if not is_full(error):
                raise
            for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX):
                _remove(segment.path(kind))
            self.unwritten.append((segment, builder))

    def _drop(self, segments: Iterable[Segment], reason: str) -> None:
        for segment in segments:
            batches, last_offset = whole_batches_after(segment.path(), 0)
            self.cuts.append(
                Cut(
                    file=segment.path(),
                    position=0,
                    length=segment.size,
                    offset=segment.base_offset,
                    reason=reason,
                    batches=batches,
                    last_offset=last_offset,
                )
            )
            for kind in SEGMENT_KINDS:
                _remove(segment.path(kind))
            self.files.remove(segment.base_offset)

    # Producers

    def _producers_up_to(self, before: list[Segment], offset: int) -> None:
        """Their state where a segment begins that is to be recovered."""
        self.files.keep_between(self.stopped.start_offset, offset)
        self.notes += self.files.load_newest(self.producers, self.stopped.start_offset, self.now)
        self._replay(before, offset)
        self.producers.end_offset = offset
        self.files.take(self.producers)

    def _rebuild_producers(
        self, segments: list[Segment], start_offset: int, end_offset: int, is_known: bool
    ) -> None:
        bases = [segment.base_offset for segment in segments]
        self.files.remove_strays(bases)
        if self.stopped.clean and not self.files.offsets and not is_known:
            # What no snapshot was ever taken of has no producers: a log of an old release.
            for offset in (*bases[-2:], end_offset):
                self.producers.end_offset = offset
                self.files.take(self.producers)
            return
        self.files.keep_between(start_offset, end_offset)
        if not is_known:
            self.notes += self.files.load_newest(self.producers, start_offset, self.now)
            self._replay(segments, end_offset)
        self.producers.end_offset = end_offset
        self.files.take(self.producers)

    def _replay(self, segments: list[Segment], end_offset: int) -> None:
        """Feed what the newest snapshot does not know yet."""
        for n, segment in enumerate(segments):
            known = self.producers.end_offset
            if n + 1 < len(segments) and segments[n + 1].base_offset <= known:
                continue
            if known >= end_offset:
                return
            if segment.base_offset >= known:
                self.producers.end_offset = segment.base_offset
                self.files.take(self.producers)
            for batch in SoundBatches(segment.path()):
                if batch.last_offset >= end_offset:
                    return
                if batch.base_offset >= known:
                    self._feed(batch, None)

    def _feed(self, batch: SoundBatch, segment: Segment | None) -> str | None:
        """A batch for the producers' state, and for the segment's transaction index; or why it
        cannot be read."""
        states = self.producers
        if batch.producer_id >= 0 and batch.attributes & CONTROL:
            try:
                marker = read_marker(batch.buffer, batch.start, batch.size)
            except BadData as error:
                return f"a control record that cannot be read: {error.reason}"
            if marker is not None:
                aborted = states.add_marker(
                    batch.producer_id,
                    batch.producer_epoch,
                    marker,
                    batch.base_offset,
                    batch.max_timestamp,
                )
                if aborted is not None and segment is not None:
                    segment.note_aborted(aborted)
        elif batch.producer_id >= 0:
            sequence = batch.base_sequence
            if sequence >= 0:
                sequence = advance_sequence(sequence, batch.last_offset - batch.base_offset)
            states.add_batch(
                batch.producer_id,
                batch.producer_epoch,
                sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp,
                bool(batch.attributes & TRANSACTIONAL),
            )
        states.end_offset = batch.last_offset + 1
        return None


def _refusal(batch: SoundBatch, base_offset: int, next_offset: int) -> str | None:
    """Why a batch cannot be part of its segment, though its checksum is right."""
    if batch.last_offset < next_offset or batch.base_offset < base_offset:
        return f"a batch with offset {batch.last_offset}, where {next_offset} or more follows"
    if batch.last_offset - base_offset > MAX_INT:
        return f"offset {batch.last_offset} is too far from the segment's base offset"
    return None


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)

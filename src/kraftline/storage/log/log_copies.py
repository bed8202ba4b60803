"""A log that is a copy of another: it takes batches in as they are."""

from __future__ import annotations

from kraftline.storage.log.batch_fields import CONTROL, BatchFields
from kraftline.storage.log.log_base import LogBase
from kraftline.storage.log.markers import read_marker
from kraftline.storage.log.problems import AppendRefused, ErrorCode
from kraftline.storage.sound_batches import SoundBatch, batches_in, is_sound


class CopiedLog(LogBase):
    __slots__ = ()

    def append_copies(self, data: memoryview) -> int:
        """Take in batches as another copy of this log has them, offsets and all; where the log ends
        then. Half a batch at the end of `data` is left for later."""
        with self._lock:
            self._check_open()
            for copy in batches_in(data, 0, len(data)):
                if copy.last_offset < self.end_offset:
                    continue  # a read begins with the batch that has its offset
                if not is_sound(copy):
                    where = f"a batch for {self.name} at offset {copy.base_offset}"
                    raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"{where} has a wrong checksum")
                self._append_copy(copy, data[copy.start : copy.start + copy.size])
            return self.end_offset

    def begin_at(self, offset: int) -> None:
        """An empty log begins at an offset."""
        with self._upkeep, self.disk.doing(f"beginning {self.name}"):
            with self._lock:
                self._check_open()
                now = self._clock()
                if not self._files.roll(offset, self.producers, now):
                    return
                gone = self._files.drop(1)
                self.start_offset = self.end_offset = self.recovery_point = offset
                self.high_watermark = offset
            self._files.mark_deleted(gone, now)

    def become(self, log: LogBase) -> None:
        """This is a whole copy of the other log: what is not in its batches counts here too."""
        with self._lock:
            self._check_open()
            self._files.config = log.config
            self.end_offset = self.producers.end_offset = log.end_offset
            self.epochs, self._epochs_changed = log.epochs, True
            self.high_watermark = log.high_watermark
            self.producers.replicated(log.high_watermark)
            self._advance_start(log.start_offset)

    # Inside; the lock is held

    def _append_copy(self, copy: SoundBatch, data: memoryview) -> None:
        count = copy.last_offset - copy.base_offset + 1
        batch = BatchFields(
            data,
            copy.attributes,
            count,
            copy.max_timestamp,
            copy.producer_id,
            copy.producer_epoch,
            copy.base_sequence,
            base_offset=copy.base_offset,
        )
        files = self._files
        if files.is_full(copy.size, copy.last_offset, copy.max_timestamp, self._clock()):
            files.roll(copy.base_offset, self.producers, self._clock())
        files.write(data, copy.last_offset, copy.max_timestamp)
        self.end_offset = self.producers.end_offset = copy.last_offset + 1
        if copy.leader_epoch >= 0 and copy.leader_epoch != self.epochs.latest:
            self._epochs_changed |= self.epochs.assign(copy.leader_epoch, copy.base_offset)
        if copy.producer_id >= 0:
            is_control = copy.attributes & CONTROL
            self._note_producer(batch, read_marker(data, 0, len(data)) if is_control else None)

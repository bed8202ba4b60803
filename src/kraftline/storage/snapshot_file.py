"""Snapshots of the metadata log (`.checkpoint`) and `bootstrap.checkpoint`: read and written.

Batches with offsets from 0 on: a control batch with the header (and, from kraft.version 1, the
version and the voters), batches of metadata records, a control batch with the footer. Written as
Kafka's RecordsSnapshotWriter does it, byte for byte.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import IO, Self

from kraftline.errors import BadData, Corrupt, NotRepresentable, Truncated
from kraftline.records.batch import HEADER_SIZE, Batch
from kraftline.records.control import Control, ControlType, build_control_batch, read_control
from kraftline.records.record import Record
from kraftline.records.write import encode_records, frame_batch
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.snapshot_footer_record import SnapshotFooterRecord
from kraftline.schema.control.snapshot_header_record import SnapshotHeaderRecord
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.schema.types import Message
from kraftline.storage.files import Path, sync_directory, unwritable
from kraftline.storage.names import (
    BOOTSTRAP,
    SnapshotId,
    SnapshotState,
    format_snapshot,
    parse_snapshot,
)
from kraftline.storage.segment import SegmentReader

# Kafka's largest batch of a metadata log or snapshot.
MAX_BATCH_BYTES = 8 * 1024 * 1024
BOOTSTRAP_ID = SnapshotId(0, 0)


def now() -> int:
    return time.time_ns() // 1_000_000


class SnapshotReader:
    """One snapshot: `header`, `kraft_version` and `voters` at once, batches when asked for.

    `id` is from the file's name, None where that is not one (bootstrap.checkpoint). Batches must
    have the epoch that the name tells, unless `any_epoch`: Kafka itself does not look.
    """

    def __init__(self, path: Path, *, any_epoch: bool = False) -> None:
        name = parse_snapshot(os.path.basename(os.fspath(path)))
        self.path = os.fspath(path)
        self.id = None if name is None else name.id
        self._epoch = None if name is None or any_epoch else name.id.epoch
        self.header = SnapshotHeaderRecord()
        self.kraft_version = 0
        self.voters: VotersRecord | None = None
        self._reader = SegmentReader(path)
        try:
            self._read_header()
        except BaseException:
            self.close()
            raise

    def batches(self) -> Iterator[Batch]:
        """The batches of metadata records. Every batch is checked, the footer must be last:
        BadData where the snapshot is not whole and in order."""
        expected, ended = 0, False
        for batch, position in self._reader.batches():
            if ended:
                raise self._corrupt("there are batches after the footer", position)
            self._check(batch, expected, position)
            expected = batch.next_offset
            if not batch.is_control:
                yield batch
                continue
            kinds = [control.type for control in self._controls(batch, position)]
            ended = ControlType.SNAPSHOT_FOOTER in kinds
        tail = self._reader.tail
        if not ended or (tail is not None and tail.length):
            raise Truncated(
                "the snapshot does not end with its footer",
                file=self.path,
                position=None if tail is None else tail.position,
                hint="an older one may be whole; Kafka takes what is missing for removed",
            )

    def records(self) -> Iterator[Record]:
        """The metadata records; their offsets count from the start of the snapshot."""
        for batch in self.batches():
            try:
                yield from batch.records(check_crc=False)
            except BadData as error:
                raise error.at(file=self.path) from None

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read_header(self) -> None:
        for batch, position in self._reader.batches():
            self._check(batch, 0, position)
            controls = self._controls(batch, position) if batch.is_control else []
            if not controls or controls[0].type != ControlType.SNAPSHOT_HEADER:
                raise self._corrupt("it does not start with a snapshot header", position)
            for control in controls:
                match control.message:
                    case SnapshotHeaderRecord() as header:
                        self.header = header
                    case KRaftVersionRecord() as version:
                        self.kraft_version = version.kraft_version
                    case VotersRecord() as voters:
                        self.voters = voters
            return
        raise Truncated("there is no whole batch in it", file=self.path, position=0)

    def _controls(self, batch: Batch, position: int) -> list[Control]:
        try:
            return [read_control(record) for record in batch.records(check_crc=False)]
        except BadData as error:
            raise error.at(file=self.path, position=position) from None

    def _check(self, batch: Batch, expected: int, position: int) -> None:
        if batch.magic != 2:
            raise self._corrupt(f"a batch of magic {batch.magic}", position)
        if batch.base_offset != expected:
            raise self._corrupt(
                f"a batch begins at offset {batch.base_offset}, where {expected} follows", position
            )
        if self._epoch is not None and batch.partition_leader_epoch != self._epoch:
            raise self._corrupt(
                f"a batch of epoch {batch.partition_leader_epoch} in a snapshot of epoch "
                f"{self._epoch}",
                position,
            )

    def _corrupt(self, reason: str, position: int) -> Corrupt:
        return Corrupt(reason, file=self.path, position=position)


class SnapshotWriter:
    """Writes one snapshot beside its place; `freeze` ends it and puts it there.

    A context manager: what was not frozen is removed. `clock` gives the time of a batch in
    milliseconds. Records that are appended together stay in one batch. `name` is for the one
    file that is not named after its id, bootstrap.checkpoint.
    """

    def __init__(
        self,
        directory: Path,
        id: SnapshotId,
        *,
        last_contained_log_timestamp: int = 0,
        kraft_version: int = 0,
        voters: VotersRecord | None = None,
        clock: Callable[[], int] = now,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        name: str | None = None,
    ) -> None:
        if voters is not None and kraft_version < 1:
            raise NotRepresentable("a snapshot of kraft.version 0 has no voters")
        self.id = id
        self.path = os.path.join(os.fspath(directory), name or format_snapshot(id))
        stem = self.path.removesuffix(SnapshotState.WHOLE.value)
        self._aside = f"{stem}-{uuid.uuid4().int >> 64}{SnapshotState.PARTIAL.value}"
        if name is not None:
            self._aside = f"{self.path}.tmp"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._aside)
        self._clock = clock
        self._max_batch = max_batch_bytes
        self._next_offset = 0
        self._body = bytearray()
        self._base_offset = self._timestamp = 0
        try:
            self._file: IO[bytes] | None = open(self._aside, "xb")  # noqa: SIM115 (see close)
        except OSError as error:
            raise unwritable(self._aside, error) from error
        head: list[Message] = [
            SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)
        ]
        if kraft_version >= 1:
            head.append(KRaftVersionRecord(kraft_version=kraft_version))
            if voters is not None:
                head.append(voters)
        self._control(head)

    def append(self, values: Sequence[bytes]) -> None:
        """Add records, as the bytes of their values, in one batch."""
        if not values:
            return
        if not self._body:
            self._begin()
        body = self._encode(values)
        if HEADER_SIZE + len(self._body) + len(body) <= self._max_batch:
            self._add(values, body)
            return
        if HEADER_SIZE + len(body) > self._max_batch:
            raise NotRepresentable(
                f"{len(values)} records of {len(body)} bytes do not fit into a batch of "
                f"{self._max_batch}: append fewer at a time"
            )
        self._end()
        self._begin()
        self._add(values, self._encode(values))
        # Kafka hands over all it has when one batch is full, so this one ends here as well.
        self._end()

    def freeze(self) -> int:
        """Write the footer, flush, and give the file its name; returns its size."""
        self._end()
        self._control([SnapshotFooterRecord()])
        file = self._open()
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
        file.close()
        self._file = None
        if os.path.basename(self.path) != BOOTSTRAP:
            # Kafka makes its snapshots read-only: nobody ever changes one.
            mode = os.stat(self._aside).st_mode
            os.chmod(self._aside, mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
        os.replace(self._aside, self.path)
        sync_directory(os.path.dirname(self.path) or ".")
        return size

    def close(self) -> None:
        """Give up, unless it is frozen already."""
        if self._file is not None:
            self._file.close()
            self._file = None
            os.unlink(self._aside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _begin(self) -> None:
        self._base_offset, self._timestamp = self._next_offset, self._clock()

    def _encode(self, values: Sequence[bytes]) -> bytes:
        records = [
            Record(self._next_offset + n, self._timestamp, None, value)
            for n, value in enumerate(values)
        ]
        return encode_records(records, self._base_offset, self._timestamp)

    def _add(self, values: Sequence[bytes], body: bytes) -> None:
        self._body += body
        self._next_offset += len(values)

    def _end(self) -> None:
        if not self._body:
            return
        batch = frame_batch(
            bytes(self._body),
            count=self._next_offset - self._base_offset,
            base_offset=self._base_offset,
            last_offset=self._next_offset - 1,
            base_timestamp=self._timestamp,
            max_timestamp=self._timestamp,
            partition_leader_epoch=self.id.epoch,
        )
        self._open().write(batch)
        self._body.clear()

    def _control(self, messages: Sequence[Message]) -> None:
        batch = build_control_batch(
            messages,
            base_offset=self._next_offset,
            timestamp=self._clock(),
            partition_leader_epoch=self.id.epoch,
        )
        self._open().write(batch)
        self._next_offset += len(messages)

    def _open(self) -> IO[bytes]:
        if self._file is None:
            raise ValueError("the snapshot is frozen or closed")
        return self._file


def write_bootstrap(
    directory: Path, values: Sequence[bytes], *, clock: Callable[[], int] = now
) -> str:
    """Write bootstrap.checkpoint: the records with which a new cluster starts; its path."""
    with SnapshotWriter(directory, BOOTSTRAP_ID, clock=clock, name=BOOTSTRAP) as writer:
        writer.append(values)
        writer.freeze()
    return writer.path

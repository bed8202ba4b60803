"""One partition of a coordinator's topic that this broker leads: its state, and how it changes.

A request looks at the state, decides on records, and writes them here. They are appended to the
log, then replayed; what cannot be appended changes nothing. Who is told of a change waits until it
is as durable as the topic asks for, which on a broker that is alone is at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Final, Generic, TypeAlias, TypeVar

from kraftline.broker.coordinators.state import Change, Producer, State
from kraftline.broker.partition import Partition, Turn
from kraftline.controller.refusal import Refusal
from kraftline.records.compression import compress
from kraftline.records.record import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Codec
from kraftline.records.write import frame_batch, varint
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import CoordinatorTopic, encode_key, encode_value
from kraftline.storage.log import AppendRefused, LogProblem
from kraftline.storage.log.batch_fields import TRANSACTIONAL, BatchFields, Origin
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.partition_log import Appended

S = TypeVar("S", bound=State)
# A key and its value, as the log has them. No value: what the key names is gone.
Pair: TypeAlias = tuple[bytes, bytes | None]

_logger = logging.getLogger(__name__)
# Records of one batch, where they need not be all or none: small ones, far below what a batch may
# have.
_AT_ONCE: Final = 1000
_CODEC: Final = 0x07  # of a batch's attributes
# How long a write waits for replicas, as Kafka's own writes of coordinators do.
_TIMEOUT_MS: Final = 5000
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class Shard(Generic[S]):
    """`state` is there once it is loaded. `epoch` is the leader epoch that it was loaded in."""

    def __init__(
        self,
        topic: CoordinatorTopic,
        partition: Partition,
        clock: Callable[[], int],
        threads: Executor,
        flush_later: Callable[[Partition], None],
        codec: Codec = Codec.NONE,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.number = partition.log.partition
        self.epoch = partition.leader_epoch
        self.clock = clock
        self.state: S | None = None
        self.is_closed = False
        self.failure: Exception | None = None
        self._threads = threads
        self._flush_later = flush_later
        self._codec = codec
        self._unasked: set[asyncio.Future[None]] = set()

    def __repr__(self) -> str:
        return f"Shard({self.partition.log.name}, epoch {self.epoch})"

    @property
    def is_led(self) -> bool:
        partition = self.partition
        return not self.is_closed and partition.is_leader and partition.leader_epoch == self.epoch

    def write(
        self, changes: Sequence[Change], producer: Producer | None = None
    ) -> Awaitable[None] | None:
        """Append records, all or none, and replay them. None: they are durable already; else wait
        for that before anybody is told. A Refusal says why nothing was written."""
        if not changes:
            return None
        topic = self.topic
        appended = self.append_pairs(
            [
                (
                    encode_key(topic, change.key),
                    None
                    if change.value is None
                    else encode_value(topic, change.value, change.version),
                )
                for change in changes
            ],
            self.clock(),
            producer,
        )
        state = self.state
        assert state is not None
        for change in changes:
            state.replay(change, producer)
        return self.settled(appended)

    def append_pairs(
        self, pairs: Sequence[Pair], now: int, producer: Producer | None = None
    ) -> Appended:
        """Append a batch of keys with their values, as they are in the log; whoever does replays
        what they say."""
        body = _encoded(pairs)
        codec = self._codec
        if codec:
            body = compress(codec, body)
        data = frame_batch(
            body,
            count=len(pairs),
            base_offset=0,
            last_offset=len(pairs) - 1,
            base_timestamp=now,
            max_timestamp=now,
            codec=codec,
            producer_id=NO_PRODUCER_ID if producer is None else producer.id,
            producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.epoch,
            base_sequence=0,  # of no meaning; what Kafka's coordinators write
            is_transactional=producer is not None,
        )
        room = bytearray(data)
        made = BatchFields(
            memoryview(room),
            codec if producer is None else codec | TRANSACTIONAL,
            len(pairs),
            now,
            NO_PRODUCER_ID if producer is None else producer.id,
            NO_PRODUCER_EPOCH if producer is None else producer.epoch,
            0,
        )
        return self.append(room, made)

    def write_unasked(self, changes: Sequence[Change]) -> None:
        """Append records that nobody waits for, as many as they are: what cannot be appended is
        told to the log alone."""
        for at in range(0, len(changes), _AT_ONCE):
            try:
                self.write_unwaited(changes[at : at + _AT_ONCE])
            except Refusal as refusal:
                _logger.warning("%s: records were not written: %s", self, refusal.code.name)
                return

    def write_unwaited(self, changes: Sequence[Change]) -> None:
        """As `write`, where nobody is told, so that nobody waits until they are durable."""
        settled = self.write(changes)
        if settled is not None:
            task = asyncio.ensure_future(settled)
            self._unasked.add(task)
            task.add_done_callback(self._told)

    def _told(self, task: asyncio.Future[None]) -> None:
        self._unasked.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _logger.warning("%s: records may be lost: %s", self, task.exception())

    def append(self, data: bytearray, made: BatchFields | None = None) -> Appended:
        """Append a batch that is built already; whoever does replays what it says. `made` is what
        is known of it by whoever built it here, so that nobody has to look."""
        partition = self.partition
        if not self.is_led:
            raise Refusal(ErrorCode.NOT_COORDINATOR, None)
        if partition.isr_size < partition.min_isr:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
        try:
            if made is None or not _fits(made, partition.log.config):
                appended = partition.log.append(data, self.epoch, Origin.COORDINATOR)
            else:
                appended = partition.log.append_made(made, self.epoch, Origin.COORDINATOR)
        except AppendRefused as problem:
            if ErrorCode(problem.code) in _TOO_LARGE:
                raise Refusal(ErrorCode.RECORD_LIST_TOO_LARGE, str(problem)) from problem
            raise Refusal(ErrorCode(problem.code), problem.told) from problem
        except LogProblem as problem:
            raise Refusal(ErrorCode.NOT_COORDINATOR, None) from problem
        partition.advanced()
        if appended.rolled:
            self._flush_later(partition)
        return appended

    def settled(self, appended: Appended) -> Awaitable[None] | None:
        """None where an append is durable already, else what to wait for."""
        if not appended.must_flush and self.partition.log.high_watermark > appended.last_offset:
            return None
        return self._settle(appended)

    async def _settle(self, appended: Appended) -> None:
        partition = self.partition
        if appended.must_flush:
            try:
                await partition.flushed(appended.last_offset + 1, self._threads)
            except LogProblem as problem:
                raise Refusal(ErrorCode.NOT_COORDINATOR, None) from problem

        def is_replicated() -> bool:
            return partition.log.high_watermark > appended.last_offset

        await Turn([partition], lambda: not self.is_led or is_replicated()).over(_TIMEOUT_MS)
        if not self.is_led:
            raise Refusal(ErrorCode.NOT_COORDINATOR, None)
        if not is_replicated():
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)

    def close(self) -> None:
        """Led no more."""
        self.is_closed = True
        if self.state is not None:
            self.state.close()


def _fits(batch: BatchFields, config: LogConfig) -> bool:
    """Is a batch as the topic asks for, so that nothing of it has to be changed or refused?"""
    return (
        not config.log_append_time
        and (config.codec is None or config.codec == batch.attributes & _CODEC)
        and len(batch.data) <= config.max_message_bytes
    )


def _encoded(pairs: Sequence[Pair]) -> bytes:
    """Records of one time, without headers, at offsets that follow each other."""
    out: list[bytes] = []
    for at, (key, value) in enumerate(pairs):
        if value is None:
            record = b"".join((b"\0\0", varint(at), varint(len(key)), key, b"\1\0"))
        else:
            head = varint(at), varint(len(key)), key, varint(len(value)), value
            record = b"".join((b"\0\0", *head, b"\0"))
        out += (varint(len(record)), record)
    return b"".join(out)

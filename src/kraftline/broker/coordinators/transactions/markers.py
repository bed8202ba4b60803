"""Markers: how the partitions of a transaction hear of its end.

A marker is a control batch in the partition's log. One in `__consumer_offsets` settles what groups
have committed in the transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec

from kraftline.broker.cache import MetadataCache
from kraftline.broker.coordinators.state import Producer
from kraftline.broker.coordinators.transactions.transaction import MAX_EPOCH
from kraftline.broker.coordinators.transactions.transitions import BUMPS_EPOCHS
from kraftline.broker.partition import Partition, Turn
from kraftline.broker.partitions import Partitions
from kraftline.controller.refusal import Refusal
from kraftline.records.control import build_end_txn_batch
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import OFFSETS
from kraftline.storage.log import Appended, AppendRefused, LogProblem
from kraftline.storage.log.batch_fields import Origin

if TYPE_CHECKING:
    from kraftline.broker.coordinators.groups.coordinator import GroupCoordinator
    from kraftline.broker.coordinators.transactions.verification import Verifications

_COORDINATOR_AWAY: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class Marker(msgspec.Struct, frozen=True, gc=False):
    """How a producer's transaction ended. `version` is the transaction.version that it ended by:
    from 2 on the marker has a higher epoch than the records."""

    producer_id: int
    epoch: int
    is_commit: bool
    coordinator_epoch: int
    version: int = 0


class Markers:
    """Writes markers into partitions that this broker leads."""

    def __init__(
        self,
        cache: MetadataCache,
        partitions: Partitions,
        groups: GroupCoordinator,
        verifications: Verifications,
        clock: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        self._cache = cache
        self._partitions = partitions
        self._groups = groups
        self._verifications = verifications
        self._clock = clock
        self._timeout_ms = timeout_ms

    def write(self, topic: str, number: int, marker: Marker) -> Awaitable[None] | None:
        """None: it is in the log for good; else wait for that. A Refusal says why it is not."""
        partition = self._partitions.find(topic, number, self._cache.image.topics)
        if not isinstance(partition, Partition):
            raise Refusal(partition, None)
        if not partition.is_leader:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        if marker.version >= BUMPS_EPOCHS:
            _check_epoch(partition, marker)
        data = build_end_txn_batch(
            commit=marker.is_commit,
            base_offset=0,
            timestamp=self._clock(),
            producer_id=marker.producer_id,
            producer_epoch=marker.epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )
        if topic == OFFSETS.name:
            settled = self._settle_offsets(number, bytearray(data), marker)
        else:
            settled = self._append(partition, bytearray(data))
        self._verifications.marked(topic, number, marker.producer_id, marker.epoch)
        return settled

    def _append(self, partition: Partition, data: bytearray) -> Awaitable[None] | None:
        if partition.isr_size < partition.min_isr:
            raise Refusal(ErrorCode.NOT_ENOUGH_REPLICAS, None)
        try:
            appended = partition.log.append(data, partition.leader_epoch, Origin.COORDINATOR)
        except AppendRefused as problem:
            raise Refusal(ErrorCode(problem.code), problem.told) from problem
        except LogProblem as problem:
            raise Refusal(ErrorCode(problem.code), None) from problem
        partition.advanced()
        if appended.rolled:
            self._partitions.flush_later(partition)
        if not appended.must_flush and partition.log.high_watermark > appended.last_offset:
            return None
        return self._settled(partition, appended)

    def _settle_offsets(
        self, number: int, data: bytearray, marker: Marker
    ) -> Awaitable[None] | None:
        try:
            state = self._groups.shards.at(number)
            appended = state.shard.append(data)
        except Refusal as refusal:
            if refusal.code in _COORDINATOR_AWAY:
                raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, None) from refusal
            raise
        producer = Producer(marker.producer_id, marker.epoch)
        state.end_transaction(producer, is_committed=marker.is_commit)
        return state.shard.settled(appended)

    async def _settled(self, partition: Partition, appended: Appended) -> None:
        if appended.must_flush:
            try:
                await partition.flushed(appended.last_offset + 1, self._partitions.threads)
            except LogProblem as problem:
                raise Refusal(ErrorCode(problem.code), None) from problem

        def is_replicated() -> bool:
            return partition.log.high_watermark > appended.last_offset

        await Turn([partition], lambda: not partition.is_leader or is_replicated()).over(
            self._timeout_ms
        )
        if not partition.is_leader:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        if not is_replicated():
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, None)


def _check_epoch(partition: Partition, marker: Marker) -> None:
    """A marker that ends a transaction has a higher epoch than its records. The same one may come
    again once the transaction is over, or where there is no higher epoch."""
    producer = partition.log.producers.get(marker.producer_id)
    if producer is None or marker.epoch > producer.epoch:
        return
    is_again = marker.epoch == producer.epoch and (
        producer.txn_first_offset < 0 or marker.epoch == MAX_EPOCH
    )
    if not is_again:
        raise Refusal(ErrorCode.INVALID_PRODUCER_EPOCH, None)

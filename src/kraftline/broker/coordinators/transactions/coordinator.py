"""This broker's part of the transactions: the partitions of `__transaction_state` that it leads.

A decision of `transitions` is written to the log, and from then on it holds. An end is decided
with one record; then every partition of the transaction hears of it; then another record says that
all have. Whoever becomes coordinator in between goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from typing import Final

from kraftline.broker.cache import MetadataCache
from kraftline.broker.coordinators.groups.coordinator import GroupCoordinator
from kraftline.broker.coordinators.shard import Shard
from kraftline.broker.coordinators.shards import Shards
from kraftline.broker.coordinators.transactions.markers import Marker, Markers
from kraftline.broker.coordinators.transactions.state import TransactionsState
from kraftline.broker.coordinators.transactions.transaction import NEVER, Status, Transaction
from kraftline.broker.coordinators.transactions.transitions import (
    NeedsProducerId,
    Producer,
    begun,
    check_has,
    completed,
    ended,
    fenced,
    initialised,
    may_be,
    with_partitions,
)
from kraftline.broker.coordinators.transactions.verification import Verifications
from kraftline.broker.partitions import Partitions
from kraftline.broker.producer_ids import NoProducerIds, ProducerIds
from kraftline.config.effective import Config
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import TRANSACTIONS

_logger = logging.getLogger(__name__)

FEATURE: Final = "transaction.version"
# After so many ms a partition that could not hear of an end is told again.
_AGAIN_MS: Final = 100
# Tombstones of ids that have expired, in one batch.
_TOMBSTONES: Final = 1000
# Errors of partitions that somebody with a higher epoch has written to: telling again is no use.
_HOPELESS: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class TransactionCoordinator:
    """`shards` has to be told of metadata, after the groups'. `producer_ids` are for everybody."""

    def __init__(
        self,
        config: Config,
        cache: MetadataCache,
        partitions: Partitions,
        groups: GroupCoordinator,
        producer_ids: ProducerIds,
        clock: Callable[[], int],
    ) -> None:
        self.producer_ids = producer_ids
        self.longest_timeout_ms = config.whole("transaction.max.timeout.ms")
        self.verifications = Verifications(clock, config.whole("producer.id.expiration.ms"))
        self.shards: Shards[TransactionsState] = Shards(
            TRANSACTIONS, partitions, self._state, clock
        )
        self.markers = Markers(
            cache,
            partitions,
            groups,
            self.verifications,
            clock,
            config.whole("request.timeout.ms"),
        )
        self._cache = cache
        self._clock = clock
        self._sweep_ms = config.whole("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        self._expire_ms = config.whole("transaction.remove.expired.transaction.cleanup.interval.ms")
        self._kept_ms = config.whole("transactional.id.expiration.ms")
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def version(self) -> int:
        """The cluster's transaction.version."""
        return self._cache.image.features.levels.get(FEATURE, 0)

    # What clients ask for; what is wrong is raised as a Refusal

    async def initialise(self, id: str, timeout_ms: int, expected: Producer | None) -> Producer:
        """A producer begins with a transactional id: its producer id and epoch."""
        new_id: int | None = None
        while True:
            state = self._of(id)
            old = state.transactions.get(id)
            try:
                if old is None:
                    if new_id is None:
                        raise NeedsProducerId
                    old = begun(id, new_id, timeout_ms, self._clock())
                if old.status is Status.ONGOING and (expected is None or may_be(expected, old)):
                    await self._fence(state, old, new_id)
                    raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, None)
                new = initialised(old, timeout_ms, expected, self._clock(), new_id)
            except NeedsProducerId:
                new_id = await self._new_id()
                continue
            settled = state.write(new, self._log_version)
            if settled is not None:
                await settled
            return Producer(new.producer_id, new.epoch)

    def add(
        self, id: str, who: Producer, partitions: Collection[tuple[str, int]], client_version: int
    ) -> Awaitable[None] | None:
        """Partitions are to have records of the transaction."""
        state = self._of(id)
        new = with_partitions(_known(state, id), who, partitions, client_version, self._clock())
        return None if new is None else state.write(new, self._log_version)

    def missing(
        self, id: str, who: Producer, partitions: Collection[tuple[str, int]]
    ) -> list[tuple[str, int]]:
        """The partitions that the producer's transaction does not have."""
        known = _known(self._of(id), id)
        check_has(known, who)
        return [each for each in partitions if each not in known.partitions]

    def end(
        self, id: str, who: Producer, is_commit: bool, client_version: int
    ) -> Producer | Awaitable[Producer]:
        """The transaction ends: with which id and epoch its producer goes on."""
        try:
            return self._end(id, who, is_commit, client_version, None)
        except NeedsProducerId:
            return self._end_with_new_id(id, who, is_commit, client_version)

    def _of(self, id: str) -> TransactionsState:
        if not id:
            raise Refusal(ErrorCode.INVALID_REQUEST, None)
        return self.shards.of(id)

    # Ends

    def _end(
        self, id: str, who: Producer, is_commit: bool, client_version: int, new_id: int | None
    ) -> Producer | Awaitable[Producer]:
        state = self._of(id)
        old = _known(state, id)
        new = ended(old, who, is_commit, client_version, self._clock(), new_id)
        if new is None:
            return Producer(old.producer_id, old.epoch)
        settled = self._prepare(state, new)
        after = completed(new, new.updated_at)
        then = Producer(after.producer_id, after.epoch)
        return then if settled is None else _after(settled, then)

    async def _end_with_new_id(
        self, id: str, who: Producer, is_commit: bool, client_version: int
    ) -> Producer:
        ended = self._end(id, who, is_commit, client_version, await self._new_id())
        return ended if isinstance(ended, Producer) else await ended

    async def _fence(self, state: TransactionsState, old: Transaction, new_id: int | None) -> None:
        settled = self._prepare(state, fenced(old, self.version, self._clock(), new_id))
        if settled is not None:
            await settled

    def _prepare(self, state: TransactionsState, new: Transaction) -> Awaitable[None] | None:
        """The end is decided; all partitions hear of it as soon as that is durable."""
        settled = state.write(new, self._log_version)
        if settled is None:
            self._finish(state, new.id)
            return None
        end_offset = state.shard.partition.log.end_offset
        return asyncio.shield(self._task(self._finish_once(state, new.id, settled, end_offset)))

    async def _finish_once(
        self, state: TransactionsState, id: str, settled: Awaitable[None], end_offset: int
    ) -> None:
        try:
            await settled
        finally:
            self._finish_from(state, id, end_offset)

    def _finish_from(self, state: TransactionsState, id: str, end_offset: int) -> None:
        """Nobody hears of a decision that could still be lost."""
        if not state.shard.is_led:
            return
        if state.shard.partition.log.high_watermark >= end_offset:
            self._finish(state, id)
        else:
            again = partial(self._finish_from, state, id, end_offset)
            state.timers.set(("finish", id), _AGAIN_MS, again)

    def _finish(self, state: TransactionsState, id: str) -> None:
        """Tell the partitions of a transaction how it ended, as many as can hear it now."""
        known = state.transactions.get(id)
        if known is None or not known.status.is_prepared or not state.shard.is_led:
            return
        marker = Marker(
            producer_id=known.producer_id,
            epoch=known.epoch,
            is_commit=known.status is Status.PREPARE_COMMIT,
            coordinator_epoch=state.shard.epoch,
            version=known.client_version,
        )
        left: list[tuple[str, int]] = []
        under_way: list[tuple[tuple[str, int], Awaitable[None]]] = []
        for topic, number in state.unmarked.pop(id, known.partitions):
            try:
                settled = self.markers.write(topic, number, marker)
            except Refusal as refusal:
                if refusal.code in _HOPELESS:
                    _logger.error(
                        "%s-%d cannot hear of the end of %s: %s",
                        topic,
                        number,
                        id,
                        refusal.code.name,
                    )
                    for _, other in under_way:
                        self._task(_ignoring(other))
                    return
                if refusal.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    left.append((topic, number))
                continue  # what has been deleted needs no marker
            if settled is not None:
                under_way.append(((topic, number), settled))
        if under_way:
            self._task(self._marked(state, id, left, under_way))
        else:
            self._marked_all_but(state, id, left)

    async def _marked(
        self,
        state: TransactionsState,
        id: str,
        left: list[tuple[str, int]],
        under_way: list[tuple[tuple[str, int], Awaitable[None]]],
    ) -> None:
        for where, settled in under_way:
            try:
                await settled
            except Refusal:
                left.append(where)
        self._marked_all_but(state, id, left)

    def _marked_all_but(
        self, state: TransactionsState, id: str, left: list[tuple[str, int]]
    ) -> None:
        if not left:
            self._complete(state, id)
        elif state.shard.is_led:
            state.unmarked[id] = frozenset(left)
            state.timers.set(("finish", id), _AGAIN_MS, partial(self._finish, state, id))

    def _complete(self, state: TransactionsState, id: str) -> None:
        known = state.transactions.get(id)
        if known is None or not known.status.is_prepared or not state.shard.is_led:
            return
        try:
            settled = state.write(completed(known, self._clock()), self._log_version)
        except Refusal as refusal:
            _logger.warning("the end of %s is not noted yet: %s", id, refusal.code.name)
            if state.shard.is_led:
                state.unmarked[id] = frozenset()
                state.timers.set(("finish", id), _AGAIN_MS, partial(self._finish, state, id))
            return
        if settled is not None:
            self._task(_ignoring(settled))

    # What happens by itself

    def _state(self, shard: Shard[TransactionsState]) -> TransactionsState:
        return TransactionsState(shard, self._loaded)

    def _loaded(self, state: TransactionsState) -> None:
        for each in tuple(state.transactions.values()):
            if each.status.is_prepared:
                # Groups may be loading yet, which have to hear of it too.
                self._finish(state, each.id)
        state.timers.set("sweep", self._sweep_ms, partial(self._sweep, state))
        state.timers.set("expire", self._expire_ms, partial(self._expire, state))

    def _sweep(self, state: TransactionsState) -> None:
        """Abort what takes longer than its client has said."""
        state.timers.set("sweep", self._sweep_ms, partial(self._sweep, state))
        now = self._clock()
        for each in tuple(state.ongoing.values()):
            if each.timeout_ms != NEVER and each.started_at + each.timeout_ms < now:
                self._task(self._time_out(state, each))

    async def _time_out(self, state: TransactionsState, old: Transaction) -> None:
        new_id: int | None = None
        try:
            if old.is_exhausted:
                new_id = await self._new_id()
            if state.transactions.get(old.id) is old and state.shard.is_led:
                await self._fence(state, old, new_id)
                _logger.info("%s was aborted: it took longer than %d ms", old.id, old.timeout_ms)
        except Refusal as refusal:
            _logger.warning("%s cannot be aborted now: %s", old.id, refusal.code.name)

    def _expire(self, state: TransactionsState) -> None:
        """Forget transactional ids that nobody has used for long."""
        state.timers.set("expire", self._expire_ms, partial(self._expire, state))
        oldest = self._clock() - self._kept_ms
        gone = [
            each.id
            for each in state.transactions.values()
            if each.status.is_over and each.updated_at <= oldest
        ]
        for start in range(0, len(gone), _TOMBSTONES):
            try:
                settled = state.forget(gone[start : start + _TOMBSTONES])
            except Refusal as refusal:
                _logger.warning("transactional ids are kept for now: %s", refusal.code.name)
                return
            if settled is not None:
                self._task(_ignoring(settled))

    @property
    def _log_version(self) -> int:
        """Of the values in the log: flexible ones from transaction.version 1 on."""
        return min(self.version, 1)

    async def _new_id(self) -> int:
        try:
            return await self.producer_ids.take()
        except NoProducerIds as problem:
            # As from a coordinator that is not ready: clients ask again.
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None) from problem

    def _task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _known(state: TransactionsState, id: str) -> Transaction:
    known = state.transactions.get(id)
    if known is None:
        raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING, None)
    return known


async def _after(settled: Awaitable[None], then: Producer) -> Producer:
    await settled
    return then


async def _ignoring(settled: Awaitable[None]) -> None:
    """Whoever becomes coordinator next finds it in the log, or does it again."""
    try:
        await settled
    except Refusal as refusal:
        _logger.warning("not replicated yet: %s", refusal.code.name)

"""Everything that one partition of `__transaction_state` says: a transaction to each id."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from kraftline.broker.coordinators.shard import Shard
from kraftline.broker.coordinators.state import Change, Producer, State
from kraftline.broker.coordinators.timers import Timers
from kraftline.broker.coordinators.transactions.transaction import (
    Status,
    Transaction,
    change,
    read,
)
from kraftline.errors import BadData
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.schema.coordinator.transaction.transaction_log import (
    TransactionLogKey,
    TransactionLogValue,
)

_logger = logging.getLogger(__name__)


class TransactionsState(State):
    """`on_loaded` is called once everything is there. Beside what is replayed: `unmarked` has the
    partitions that still have to hear how a transaction ended, where that could not be at once."""

    def __init__(
        self, shard: Shard[TransactionsState], on_loaded: Callable[[TransactionsState], None]
    ) -> None:
        self.shard = shard
        self.transactions: dict[str, Transaction] = {}
        # Those that may take too long, by id.
        self.ongoing: dict[str, Transaction] = {}
        self.unmarked: dict[str, frozenset[tuple[str, int]]] = {}
        self.timers = Timers()
        self._on_loaded = on_loaded

    def write(self, new: Transaction, version: int) -> Awaitable[None] | None:
        """Make it so; as with `Shard.write` there may be something to wait for."""
        settled = self.shard.write((change(new, version),))
        self._put(new)  # with what the log does not keep
        return settled

    def forget(self, ids: Iterable[str]) -> Awaitable[None] | None:
        """Transactional ids are gone."""
        return self.shard.write(
            [Change(TransactionLogKey(transactional_id=id), None) for id in ids]
        )

    def replay(self, change: Change, producer: Producer | None) -> None:
        key, value = change.key, change.value
        assert isinstance(key, TransactionLogKey)
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            self.ongoing.pop(key.transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue)
        try:
            self._put(read(key, value))
        except BadData as problem:
            _logger.error("%s: passed over: %s", self.shard.partition.log.name, problem)

    def end_transaction(self, producer: Producer, *, is_committed: bool) -> None:
        """Nobody writes here in a transaction."""

    def loaded(self) -> None:
        self._on_loaded(self)

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Partitions are looked up when they have to hear of an end."""

    def close(self) -> None:
        self.timers.close()

    def _put(self, new: Transaction) -> None:
        self.transactions[new.id] = new
        if new.status is Status.ONGOING:
            self.ongoing[new.id] = new
        else:
            self.ongoing.pop(new.id, None)

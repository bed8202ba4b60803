"""The numbers of transactions: how many stand where, markers that wait, and how far loading is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kraftline.broker.coordinators.transactions.coordinator import TransactionCoordinator
from kraftline.broker.coordinators.transactions.transaction import Status
from kraftline.operation.exposition import Family, Sample, one

_MARKERS: Final = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
_KAFKA: Final = "kafka_server_transaction_coordinator_metrics_"
_OWN: Final = "kraftline_transaction_coordinator_"
# Those that a transaction is in between two requests.
_STATES: Final = tuple(
    status for status in Status if status not in (Status.DEAD, Status.PREPARE_EPOCH_FENCE)
)


def transaction_metrics(coordinator: TransactionCoordinator) -> Iterator[Family]:
    """Of the partitions that this broker leads."""
    shards = coordinator.shards
    found: Counter[Status] = Counter()
    waiting = 0
    for state in shards:
        found.update(each.status for each in state.transactions.values())
        waiting += sum(map(len, state.unmarked.values()))
    yield Family(
        _OWN + "transactions",
        "gauge",
        "Transactional ids by the state of their transaction.",
        [Sample(found[status], {"state": status.told}) for status in _STATES],
    )
    yield one(
        _MARKERS + "unknowndestinationqueuesize",
        "gauge",
        "Markers that wait for a partition that cannot take them now.",
        waiting,
    )
    yield one(
        _KAFKA + "partition_load_time_max",
        "gauge",
        "Milliseconds that the partition took to load that took longest.",
        shards.slowest_ms,
    )
    yield one(
        _OWN + "loading_lag",
        "gauge",
        "Offsets that are still to be read of partitions that are being loaded.",
        sum(each.end_offset - each.offset for each in tuple(shards.loading.values())),
    )
    yield one(
        _OWN + "foreign_records",
        "counter",
        "Records of the transactions' topic that this node does not know; they stay there.",
        shards.foreign,
    )

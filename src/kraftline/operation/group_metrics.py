"""The numbers of groups, by the names that Kafka's coordinator has, and how far loading is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kraftline.broker.coordinators.groups.classic.group import Phase
from kraftline.broker.coordinators.groups.coordinator import GroupCoordinator
from kraftline.broker.coordinators.groups.group import Kind
from kraftline.operation.exposition import Family, Sample, one

_CLASSIC: Final = "kafka_coordinator_group_groupmetadatamanager_"
_ALL: Final = "kafka_server_group_coordinator_metrics_"
_OWN: Final = "kraftline_group_coordinator_"
_CONSUMER_STATES: Final = ("empty", "assigning", "reconciling", "stable", "dead")


def group_metrics(coordinator: GroupCoordinator) -> Iterator[Family]:
    """Of the partitions that this broker leads; counts are since its start."""
    shards, counts = coordinator.shards, coordinator.counts
    found: Counter[tuple[Kind, str]] = Counter()
    offsets = 0
    for state in shards:
        offsets += state.offsets.count
        found.update((group.kind, group.state) for group in state.groups.values())
    of_kind = {
        kind: sum(count for (each, _), count in found.items() if each is kind) for kind in Kind
    }
    yield one(_CLASSIC + "numoffsets", "gauge", "Offsets that groups have committed.", offsets)
    yield one(
        _CLASSIC + "numgroups", "gauge", "Groups of the classic protocol.", of_kind[Kind.CLASSIC]
    )
    for phase in Phase:
        yield one(
            f"{_CLASSIC}numgroups{phase.value.lower()}",
            "gauge",
            f"Groups of the classic protocol that are {phase.value}.",
            found[Kind.CLASSIC, phase.value],
        )
    yield Family(
        _ALL + "group_count",
        "gauge",
        "Groups by protocol.",
        [Sample(count, {"protocol": kind.value}) for kind, count in of_kind.items()],
    )
    yield Family(
        _ALL + "consumer_group_count",
        "gauge",
        "Groups of the consumer protocol by state.",
        [
            Sample(found[Kind.CONSUMER, state.capitalize()], {"state": state})
            for state in _CONSUMER_STATES
        ],
    )
    for name, help, count in (
        ("offset_commit_count", "Offsets committed.", counts.commits),
        ("offset_expiration_count", "Offsets whose retention was over.", counts.expirations),
        ("offset_deletion_count", "Offsets that somebody deleted.", counts.deletions),
        (
            "group_completed_rebalance_count",
            "Rebalances of classic groups that came to an end.",
            counts.rebalances,
        ),
    ):
        yield one(_ALL + name, "counter", help, count)
    yield from _loading(coordinator)


def _loading(coordinator: GroupCoordinator) -> Iterator[Family]:
    shards = coordinator.shards
    under_way = tuple(shards.loading.values())
    yield Family(
        _ALL + "num_partitions",
        "gauge",
        "Partitions of the offsets topic that this broker leads, by state.",
        [
            Sample(count, {"state": state})
            for state, count in (
                ("loading", len(under_way)),
                ("active", shards.active),
                ("failed", shards.failed),
            )
        ],
    )
    yield one(
        _ALL + "partition_load_time_max",
        "gauge",
        "Milliseconds that the partition took to load that took longest.",
        shards.slowest_ms,
    )
    yield one(
        _OWN + "loading_lag",
        "gauge",
        "Offsets that are still to be read of partitions that are being loaded.",
        sum(each.end_offset - each.offset for each in under_way),
    )
    yield one(
        _OWN + "foreign_records",
        "counter",
        "Records of the offsets topic that this node does not know; they stay there.",
        shards.foreign,
    )

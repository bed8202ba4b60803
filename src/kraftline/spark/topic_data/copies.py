"""Of several nodes' copies of a partition, the one to read: what segments hold decides, not how
large their files are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from kraftline.errors import KraftlineError
from kraftline.spark.segment_survey import DAMAGE, PieceCount
from kraftline.spark.sources.segment_logs import PartitionLog, above


class _Worth(NamedTuple):
    """Compared from the left. The higher leader epoch wins, as among Kafka's replicas, then the
    higher end; copies that are alike in that differ by what can be read of them."""

    leader_epoch: int
    end_offset: int
    minus_damaged: int
    records: int

    @classmethod
    def of(cls, counts: Sequence[PieceCount]) -> Self:
        damaged = sum(c.to_position - c.from_position for c in counts if c.kind == DAMAGE)
        return cls(
            max((count.leader_epoch for count in counts), default=-1),
            max((count.to_offset or 0 for count in counts), default=0),
            -damaged,
            sum(count.records for count in counts),
        )


def one_copy(
    logs: Sequence[PartitionLog], counts: Iterable[PieceCount]
) -> tuple[list[PartitionLog], list[str]]:
    """One directory for each partition; and those that are not read. Where a directory's name is
    none of Kafka's, it is not known what it would be a copy of."""
    counted: dict[str, list[PieceCount]] = {}
    for count in counts:
        counted.setdefault(above(count.file), []).append(count)
    copies: dict[tuple[str, int | None], list[PartitionLog]] = {}
    for log in logs:
        copies.setdefault((log.topic or log.directory, log.partition), []).append(log)
    kept, passed = [], []
    for alike in copies.values():
        _of_one_cluster(alike)
        best = max(alike, key=lambda log: _Worth.of(counted.get(log.directory, ())))
        kept.append(best)
        passed += [log.directory for log in alike if log is not best]
    return kept, passed


def _of_one_cluster(logs: Sequence[PartitionLog]) -> None:
    named = {log.segments[0].cluster_id: log.directory for log in logs}
    named.pop(None, None)
    if len(named) > 1:
        raise KraftlineError(
            f"{' and '.join(sorted(named.values()))} are of different clusters, so none is a copy "
            "of another; write the topics of one cluster at a time"
        )
